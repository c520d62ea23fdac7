//! Files as editors, scripts and orchestrators leave them.

use std::fs;
use std::path::Path;

use tollgate_policy::{LoadError, ReloadError, Reloaded, Reloader};

use crate::reload::folder::{Folder, text};

const APPLIED: &str = "the policy was applied";

/// What two looks find: what there is, once it has stayed.
fn poll_twice(reloader: &Reloader) -> Option<&'static str> {
    assert!(reloader.poll().is_none(), "judged at the first look");
    reloader.poll().map(|reloaded| reloaded.result())
}

#[test]
fn a_file_that_has_changed_is_applied_once() {
    let (folder, reloader) = Folder::new();
    assert!(folder.limiter.try_acquire((1,)).unwrap().is_admitted());
    folder.write(text(3));
    assert_eq!(poll_twice(&reloader), Some("applied"));
    assert_eq!((folder.limits(), folder.told()), (vec![3, 6], vec![APPLIED.to_owned()]));
    assert_eq!(
        folder.limiter.peek((1,)).unwrap().tightest().map(|it| it.remaining()),
        Some(2),
        "what was granted counts"
    );
    for _ in 0..5 {
        assert!(reloader.poll().is_none());
    }
    // The same policy in other words.
    folder.write(format!("# Raised in May.\n{}", text(3)));
    assert_eq!(poll_twice(&reloader), Some("unchanged"));
    assert_eq!(folder.told(), ["the policy is unchanged"]);
    assert_eq!(reloader.policy().dimensions()[0].quotas()[0].limit(), 3);
}

#[test]
fn a_broken_file_is_refused_once_and_a_mended_one_applied() {
    let (folder, reloader) = Folder::new();
    for (broken, place, remedy) in [
        (text(3).replace("\"1h\"", "\"10x\""), "line 10, column 7", "1h"),
        (text(3).replace("name", "nam"), "line 2, column 1", "unknown field `nam`"),
        (text(0), "line 4, column 1", "give at least one"),
        (text(3).replace("limit = 3", "limit = 3\nalgorithm = \"fixed-window\""), "line 4, column 1", ""),
    ] {
        folder.write(&broken);
        assert_eq!(poll_twice(&reloader), Some("refused"), "{broken}");
        assert!((0..5).all(|_| reloader.poll().is_none()), "told again and again");
        let told = folder.told();
        let is_told = |part: &str| told.len() == 1 && told[0].contains(part);
        assert!(
            is_told(place) && is_told(remedy) && is_told("limits.toml: line ") && is_told("the old policy stays: "),
            "{told:?}"
        );
        assert_eq!(folder.limits(), [1, 2], "{broken}");
        // It is retried when asked, too.
        assert_eq!((reloader.reload_now().result(), folder.told().len()), ("refused", 1));
    }
    // What was in force all the time is no change, but is told.
    folder.write(text(1));
    assert_eq!(poll_twice(&reloader), Some("unchanged"));
    folder.write(text(4));
    assert_eq!((poll_twice(&reloader), folder.limits()), (Some("applied"), vec![4, 8]));
}

/// Whatever part of the file there is at each look, none but the whole is applied.
#[test]
fn a_file_that_is_being_written_is_not_judged() {
    let (folder, reloader) = Folder::new();
    let whole = text(9);
    let lines = whole.match_indices('\n').map(|(at, _)| at + 1);
    // By bytes, and by lines, of which some end whole policies.
    for steps in [(0..whole.len()).collect::<Vec<_>>(), lines.collect()] {
        folder.write(text(1));
        let _ = reloader.reload_now();
        folder.told();
        for &written in steps.iter().filter(|&&written| written < whole.len()) {
            folder.write(&whole[..written]);
            assert!(reloader.poll().is_none(), "{:?}", &whole[..written]);
            assert_eq!((folder.limits(), folder.told().len()), (vec![1, 2], 0));
        }
        folder.write(&whole);
        assert_eq!((poll_twice(&reloader), folder.limits()), (Some("applied"), vec![9, 18]));
    }
}

#[test]
fn a_file_that_another_takes_the_place_of_by_a_rename_is_applied() {
    let (folder, reloader) = Folder::new();
    for limit in [2, 3, 4] {
        let new = folder.folder.path().join("limits.toml.new");
        fs::write(&new, text(limit)).unwrap();
        // As `cp --preserve` does: neither the time nor the length tells.
        let times = fs::FileTimes::new().set_modified(fs::metadata(folder.path()).unwrap().modified().unwrap());
        fs::File::options().write(true).open(&new).unwrap().set_times(times).unwrap();
        fs::rename(&new, folder.path()).unwrap();
        assert_eq!((poll_twice(&reloader), folder.limits()), (Some("applied"), vec![limit, 2 * limit]));
    }
}

/// As Kubernetes mounts a configuration: the file is a link into a folder that is a link, and that
/// one is swapped.
#[cfg(unix)]
#[test]
fn a_file_behind_links_that_are_swapped_is_applied() {
    use std::os::unix::fs::symlink;

    let (folder, reloader) = Folder::new();
    let at = |name: &str| folder.folder.path().join(name);
    let version = |limit: u32| {
        let name = format!("..version-{limit}");
        fs::create_dir(at(&name)).unwrap();
        fs::write(at(&name).join("limits.toml"), text(limit)).unwrap();
        symlink(&name, at("..data.new")).unwrap();
        fs::rename(at("..data.new"), at("..data")).unwrap();
    };
    version(1);
    fs::remove_file(folder.path()).unwrap();
    symlink(Path::new("..data/limits.toml"), folder.path()).unwrap();
    assert!(reloader.poll().is_none() && reloader.poll().is_none(), "the contents are the same");
    for limit in [5, 6, 7] {
        version(limit);
        assert_eq!((poll_twice(&reloader), folder.limits()), (Some("applied"), vec![limit, 2 * limit]));
    }
    // The folder behind it goes.
    fs::remove_dir_all(at("..version-7")).unwrap();
    assert_eq!((poll_twice(&reloader), folder.limits()), (Some("refused"), vec![7, 14]));
}

#[test]
fn without_its_file_the_policy_stays() {
    let (folder, reloader) = Folder::new();
    fs::remove_file(folder.path()).unwrap();
    assert_eq!(poll_twice(&reloader), Some("refused"));
    assert!((0..5).all(|_| reloader.poll().is_none()));
    let told = folder.told();
    assert!(told.len() == 1 && told[0].contains("limits.toml can't be read: "), "{told:?}");
    assert_eq!(folder.limits(), [1, 2]);
    // It is away while an editor saves.
    folder.write(text(1));
    assert_eq!(poll_twice(&reloader), Some("unchanged"));
    fs::remove_file(folder.path()).unwrap();
    assert!(reloader.poll().is_none());
    folder.write(text(2));
    assert_eq!((poll_twice(&reloader), folder.limits()), (Some("applied"), vec![2, 4]));
}

#[test]
fn what_is_no_text_or_too_large_is_refused() {
    let (folder, reloader) = Folder::new();
    folder.write([0xFF, 0xFE, 0x00]);
    assert_eq!(poll_twice(&reloader), Some("refused"));
    let mut large = text(3);
    while large.len() < 1 << 20 {
        large += "# A comment.\n";
    }
    large.truncate(1 << 20);
    folder.write(&large);
    assert_eq!((poll_twice(&reloader), folder.limits()), (Some("applied"), vec![3, 6]));
    folder.write(text(4) + &large[text(3).len()..] + "#");
    let Some(Reloaded::Refused(ReloadError::Load(LoadError::TooLarge { most, .. }))) = ({
        assert!(reloader.poll().is_none());
        reloader.poll()
    }) else {
        panic!("{:?}", folder.told());
    };
    assert_eq!((most, folder.limits()), (1 << 20, vec![3, 6]));
    fs::remove_file(folder.path()).unwrap();
    fs::create_dir(folder.path()).unwrap();
    assert_eq!(poll_twice(&reloader), Some("refused"));
}

#[test]
fn reload_now_does_not_wait_for_a_second_look() {
    let (folder, reloader) = Folder::new();
    folder.write(text(2));
    assert_eq!((reloader.reload_now().result(), folder.limits()), ("applied", vec![2, 4]));
    assert_eq!(reloader.reload_now().result(), "unchanged");
    assert!(reloader.poll().is_none() && reloader.poll().is_none());
    assert_eq!(folder.told(), [APPLIED, "the policy is unchanged"]);
}
