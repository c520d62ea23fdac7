//! Where lines come from: files and standard input, compressed or not.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::errors::FileError;
use crate::progress::Progress;

/// A line longer than this is no record: most likely the file is not text at all.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

const BUFFER: usize = 128 << 10;

/// Something to read lines from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// What the command line named; standard input where it named nothing.
    pub(crate) fn all(files: &[PathBuf]) -> Vec<Self> {
        if files.is_empty() {
            return vec![Self::Stdin];
        }
        files.iter().map(|file| if file == Path::new("-") { Self::Stdin } else { Self::File(file.clone()) }).collect()
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Its size in bytes, where that can be known beforehand.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File(path) => path.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len()),
        }
    }

    pub(crate) fn open(&self, progress: &Rc<RefCell<Progress>>) -> Result<Lines, FileError> {
        let raw: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(path) => Box::new(File::open(path).map_err(FileError::Open)?),
        };
        lines_of(Counted { raw, progress: Rc::clone(progress) })
    }
}

/// Tells the progress bar about every byte read.
struct Counted {
    raw: Box<dyn Read>,
    progress: Rc<RefCell<Progress>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.progress.borrow_mut().advance(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}

/// First bytes of files that are not lines of text, what they are, and what to do with them. Gzip
/// and zstd are not among them.
const FOREIGN: &[(&[u8], &str, &str)] = &[
    (b"\xfd7zXZ", "xz data", "pipe it in with `xz -dc FILE | tollgate replay ...`"),
    (b"BZh", "bzip2 data", "pipe it in with `bzip2 -dc FILE | tollgate replay ...`"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\xff\xfe", "UTF-16 text", "convert it with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "UTF-16 text", "convert it with `iconv -f UTF-16 -t UTF-8`"),
];

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn lines_of(mut raw: impl Read + 'static) -> Result<Lines, FileError> {
    // A pipe may hand over a byte at a time, so the first few are collected rather than peeked at.
    let mut start = Vec::new();
    let error = |error| FileError::Read { after_line: 0, error };
    raw.by_ref().take(6).read_to_end(&mut start).map_err(error)?;
    if let Some(&(_, kind, remedy)) = FOREIGN.iter().find(|(magic, ..)| start.starts_with(magic)) {
        return Err(FileError::Foreign { kind, remedy });
    }
    let gzipped = start.starts_with(b"\x1f\x8b");
    let zstd = is_zstd(&start);
    let marked = start.starts_with(BYTE_ORDER_MARK);
    let whole = Cursor::new(start.split_off(if marked { BYTE_ORDER_MARK.len() } else { 0 })).chain(raw);
    let whole = BufReader::with_capacity(BUFFER, whole);
    Ok(Lines::new(if gzipped {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
    } else if zstd {
        let decoder = zstd::Decoder::with_buffer(whole).map_err(error)?;
        Box::new(BufReader::with_capacity(BUFFER, decoder))
    } else {
        Box::new(whole)
    }))
}

/// Whether it begins as a frame of zstd does, or as one that is to be skipped.
fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(b"\x28\xb5\x2f\xfd") || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Whether a line came whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    TooLong,
}

/// Lines of one source, as bytes without their ends, numbered from 1.
pub(crate) struct Lines {
    reader: Box<dyn BufRead>,
    /// Lines that were looked at beforehand, and the error that stopped that.
    ahead: VecDeque<(Vec<u8>, Extent)>,
    error_ahead: Option<io::Error>,
    number: u64,
}

impl Lines {
    fn new(reader: Box<dyn BufRead>) -> Self {
        Self { reader, ahead: VecDeque::new(), error_ahead: None, number: 0 }
    }

    /// The number of the line that was read last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The first lines, without taking them. To be called once, before any is taken.
    pub(crate) fn look_ahead(&mut self, count: usize) -> impl Iterator<Item = &[u8]> {
        while self.ahead.len() < count && self.error_ahead.is_none() {
            let mut line = Vec::new();
            match read_line(&mut *self.reader, &mut line) {
                Ok(Some(extent)) => self.ahead.push_back((line, extent)),
                Ok(None) => break,
                Err(error) => self.error_ahead = Some(error),
            }
        }
        self.ahead.iter().map(|(line, _)| line.as_slice())
    }

    /// Puts the next line into `line`; `None` at the end.
    pub(crate) fn next_into(&mut self, line: &mut Vec<u8>) -> Result<Option<Extent>, FileError> {
        let next = match (self.ahead.pop_front(), self.error_ahead.take()) {
            (Some((ahead, extent)), error) => {
                self.error_ahead = error;
                *line = ahead;
                Ok(Some(extent))
            }
            (None, Some(error)) => Err(error),
            (None, None) => read_line(&mut *self.reader, line),
        };
        match next {
            Ok(Some(extent)) => {
                self.number += 1;
                Ok(Some(extent))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(FileError::Read { after_line: self.number, error }),
        }
    }
}

fn read_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<Option<Extent>> {
    line.clear();
    let most = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
    if Read::take(&mut *reader, most + 1).read_until(b'\n', line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
    } else if line.len() > LONGEST_LINE {
        reader.skip_until(b'\n')?;
        return Ok(Some(Extent::TooLong));
    }
    Ok(Some(Extent::Whole))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read_all(bytes: Vec<u8>) -> (Vec<String>, Option<FileError>) {
        let mut lines = match lines_of(Cursor::new(bytes)) {
            Ok(lines) => lines,
            Err(error) => return (Vec::new(), Some(error)),
        };
        assert!(lines.look_ahead(2).count() <= 2);
        let mut all = Vec::new();
        let mut line = Vec::new();
        loop {
            match lines.next_into(&mut line) {
                Ok(Some(Extent::Whole)) => all.push(String::from_utf8_lossy(&line).into_owned()),
                Ok(Some(Extent::TooLong)) => all.push("TOO LONG".to_owned()),
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    #[test]
    fn lines_lose_their_ends_and_the_byte_order_mark() {
        let (lines, error) = read_all(b"\xef\xbb\xbfone\r\ntwo\n\nfour".to_vec());
        assert_eq!(lines, ["one", "two", "", "four"]);
        assert!(error.is_none());
        assert!(read_all(Vec::new()).0.is_empty());
        assert_eq!(read_all(b"x".to_vec()).0, ["x"]);
    }

    #[test]
    fn gzip_is_known_by_its_first_bytes_and_may_have_several_members() {
        let mut bytes = gzipped(b"one\ntwo\n");
        bytes.extend(gzipped(b"three\n"));
        assert_eq!(read_all(bytes).0, ["one", "two", "three"]);
    }

    #[test]
    fn zstd_is_known_by_its_first_bytes_and_may_have_several_frames() {
        let skipped = b"\x5a\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        let frames = [b"one\ntw".as_slice(), b"o\nthree\n"].map(|text| zstd::encode_all(text, 1).unwrap());
        let bytes = [skipped, frames.concat()].concat();
        assert_eq!(read_all(bytes.clone()).0, ["one", "two", "three"]);
        let (lines, error) = read_all(bytes[..bytes.len() - 3].to_vec());
        assert_eq!(lines[0], "one");
        assert!(matches!(error, Some(FileError::Read { .. })), "cut short");
    }

    #[test]
    fn a_gzip_file_cut_short_gives_what_there_is_and_an_error() {
        let text: String = (0..50_000_u64).map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let mut bytes = gzipped(text.as_bytes());
        bytes.truncate(bytes.len() / 2);
        let (lines, error) = read_all(bytes);
        assert!(lines.len() > 1000 && lines.len() < 50_000, "{}", lines.len());
        assert!(matches!(error, Some(FileError::Read { after_line, .. }) if after_line == lines.len() as u64));
    }

    #[test]
    fn a_line_without_end_is_skipped_not_kept() {
        let mut bytes = b"one\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 3 * LONGEST_LINE));
        bytes.extend(b"\nthree\n");
        assert_eq!(read_all(bytes).0, ["one", "TOO LONG", "three"]);
    }

    #[test]
    fn other_compressions_say_what_to_do() {
        let (_, error) = read_all(b"\xfd7zXZ\0....".to_vec());
        assert!(error.is_some_and(|error| error.to_string().contains("xz -dc")));
    }
}
