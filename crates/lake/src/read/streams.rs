//! Files shared out between streams, one file to a stream at a time.

use comporta_engine::world::ChunkStream;
use comporta_engine::{Chunk, Result};
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Something that gives the chunks of one file in order.
pub trait Chunks: Send {
    /// The next chunk; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read on.
    fn next(&mut self) -> Result<Option<Chunk>>;
}

/// At most so many streams over so many files; each takes the next file when it is done with one.
pub fn by_file<C, F>(files: usize, parallelism: usize, open: F) -> Vec<ChunkStream>
where
    C: Chunks + 'static,
    F: Fn(usize) -> Result<C> + Send + Sync + 'static,
{
    let open = Arc::new(open);
    let taken = Arc::new(AtomicUsize::new(0));
    (0..parallelism.min(files).max(1))
        .map(|_| {
            let share = Share {
                open: Arc::clone(&open),
                taken: Arc::clone(&taken),
                files,
                current: None,
            };
            futures::stream::unfold(Some(share), |share| async move {
                let mut share = share?;
                match share.next() {
                    Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(share))),
                    Err(error) => Some((Err(error), None)),
                }
            })
            .boxed()
        })
        .collect()
}

struct Share<C, F> {
    open: Arc<F>,
    taken: Arc<AtomicUsize>,
    files: usize,
    current: Option<C>,
}

impl<C: Chunks, F: Fn(usize) -> Result<C>> Share<C, F> {
    fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(chunk) = current.next()?
            {
                return Ok(Some(chunk));
            }
            let file = self.taken.fetch_add(1, Ordering::Relaxed);
            if file >= self.files {
                self.current = None;
                return Ok(None);
            }
            self.current = Some((self.open)(file)?);
        }
    }
}
