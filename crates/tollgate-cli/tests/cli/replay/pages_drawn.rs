//! What charts look like, measured by a browser: no label is cut off, none lies on another, no
//! legend lies on a curve, and each curve differs from the others in more than its colour.

use std::collections::BTreeSet;
use std::fs;

use crate::replay::browser::{document_of, elements, text_of};
use crate::replay::support::{SAMPLE, Scratch, text, tollgate};

/// Writes what is wrong with the charts of a page into it, with all values shown one after the
/// other.
const MEASURE: &str = r#"<script>
const wrong = [];
let texts = 0, curves = 0;
const box = (it) => it.getBoundingClientRect();
const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const outside = (a, b) => a.left < b.left - 0.5 || a.right > b.right + 0.5 || a.top < b.top - 0.5 || a.bottom > b.bottom + 0.5;
for (const svg of document.querySelectorAll('svg')) {
  const all = [...svg.querySelectorAll('text')], still = all.filter((it) => !it.closest('.now'));
  texts += all.length;
  for (const it of all) if (outside(box(it), box(svg))) wrong.push('cut off: ' + it.textContent);
  const pairs = (group) => group.forEach((a, at) => {
    for (const b of group.slice(at + 1)) if (touch(box(a), box(b))) wrong.push(a.textContent + ' on ' + b.textContent);
  });
  pairs(still);
  for (const now of svg.querySelectorAll('.now')) {
    const its = [...now.querySelectorAll('text')];
    for (const it of its) for (const other of still) {
      if (touch(box(it), box(other))) wrong.push(it.textContent + ' on ' + other.textContent);
    }
  }
  const drawn = [...svg.querySelectorAll('.line, .bar, .mark')].filter((it) => !it.closest('.legend'));
  curves += drawn.length;
  for (const curve of drawn) for (const legend of svg.querySelectorAll('.legend')) {
    if (touch(box(curve), box(legend))) wrong.push('legend on a curve');
  }
}
const result = document.createElement('samp');
result.textContent = texts + ' ' + curves + ' ' + wrong.slice(0, 9).join('; ');
document.body.append(result);
</script>"#;

/// Measures the charts of a page and of an SVG file.
fn measure(scratch: &Scratch, page: &str, plot: &str) {
    let html = fs::read_to_string(page).unwrap();
    // Its policy would not let a script run.
    let page = html.lines().filter(|line| !line.contains("Content-Security-Policy")).collect::<Vec<_>>().join("\n");
    let plot = fs::read_to_string(plot).unwrap();
    let measured = scratch.with("measured.html", page.replace("</body>", &format!("{plot}{MEASURE}</body>")));
    let Some(document) = document_of(scratch, &measured) else { return };
    let result = text_of(elements(&document, "samp").last().expect("a result").1);
    let mut parts = result.splitn(3, ' ');
    let mut number = || parts.next().unwrap().parse::<u64>().unwrap();
    assert!(number() > 20 && number() > 1, "{result}");
    assert_eq!(parts.next(), Some(""));
}

/// A log of many requests at odd times, which is hard to draw.
fn crowded(scratch: &Scratch) -> String {
    let mut log = "time,client\n".to_owned();
    for at in 0..60_000_u64 {
        log +=
            &format!("{}.{:09},k{}\n", 1_772_438_400 + at / 7_000, at % 7_000 * 142_857 % 1_000_000_000, at * at % 97);
    }
    scratch.with("crowded.csv", log)
}

#[test]
fn labels_are_whole_and_no_legend_lies_on_a_curve() {
    let scratch = Scratch::new("drawn");
    let (page, plot) = (scratch.file("page.html"), scratch.file("plot.svg"));
    let year = scratch
        .with("year.csv", "time,client\n1677-09-21T00:12:44Z,a\n1970-01-01T00:00:00Z,a\n2262-04-11T23:47:16Z,a\n");
    let short = scratch.with("short.csv", "time,client\n1.000000001,a\n1.000000002,a\n1.000000009,b\n");
    let crowded = crowded(&scratch);
    let commands: [&[&str]; 8] = [
        &["replay", "--limit", "20", "--per", "10s", SAMPLE],
        &["replay", "--limit", "1", "--per", "1s", &crowded],
        &["replay", "--limit", "1", "--per", "1ns", &year],
        &["replay", "--limit", "1", "--per", "1ns", &short],
        &["suggest", SAMPLE],
        &["suggest", "--window", "1ms,7ms,100ms,1s,7s", &crowded],
        &["compare", "--limit", "20", "--per", "10s", "--max-delay", "1s", "--resolution", "1s", SAMPLE],
        &["compare", "--limit", "1", "--per", "1ns", &short],
    ];
    for args in commands {
        let output = tollgate().args(args).args(["--html", &page, "--plot", &plot]).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        measure(&scratch, &page, &plot);
    }
}

#[test]
fn a_plot_has_a_title_and_curves_that_differ_in_more_than_colour() {
    let scratch = Scratch::new("drawn-curves");
    let plot = scratch.file("plot.svg");
    let output =
        tollgate().args(["compare", "--limit", "20", "--per", "10s", "--plot", &plot, SAMPLE]).output().unwrap();
    assert!(output.status.success());
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.contains(">side by side, for each client</text>") && svg.contains(">denied per 3m</text>"));
    let attribute = |attributes: &str, name: &str| {
        attributes.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let paths: Vec<&str> = elements(&svg, "path").into_iter().map(|(attributes, _)| attributes).collect();
    let lines: Vec<&&str> = paths.iter().filter(|path| path.contains("class=\"line")).collect();
    let styles = |name: &str| lines.iter().map(|line| attribute(line, name)).collect::<BTreeSet<_>>().len();
    // Five contenders, each drawn once in the plot and once in the legend.
    assert_eq!((lines.len(), styles("stroke-width"), styles("stroke-dasharray"), styles("class")), (10, 5, 5, 5));
    let mut starts = BTreeSet::new();
    for markers in paths.iter().filter(|path| path.contains("class=\"mark")).take(5) {
        starts.insert(attribute(markers, "d").split(['a', 'H', 'L']).next().unwrap().to_owned());
    }
    assert_eq!(starts.len(), 5, "markers at places of their own");
}
