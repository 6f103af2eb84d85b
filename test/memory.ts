/** What stands in the writable memory of a process, as a core dump of it would have it. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

const blockBytes = 8 * 1024 * 1024

/** How often a text stands in the memory of a process of ours, in either of the ways in which a string is kept there. */
export function occurrencesInMemory(pid: number, text: string): number {
  const needles = [Buffer.from(text), Buffer.from(text, 'utf16le')]
  const overlap = Math.max(...needles.map(({ length }) => length)) - 1
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  const block = Buffer.alloc(blockBytes + overlap)
  try {
    return writableRanges(pid).reduce((sum, [start, end]) => {
      let found = 0
      for (let at = start; at < end; at += blockBytes) {
        const read = block.subarray(0, readAt(memory, block, Math.min(block.length, end - at), at))
        for (const needle of needles) found += countOf(read, needle, blockBytes)
      }
      return sum + found
    }, 0)
  } finally {
    closeSync(memory)
  }
}

/** Ranges of which at least a page is there; what is only reserved would take long to read and holds nothing. */
function writableRanges(pid: number): [number, number][] {
  const ranges = readFileSync(`/proc/${pid}/smaps`, 'utf8').matchAll(
    /^([0-9a-f]+)-([0-9a-f]+) rw[^\n]*\n(?:\w+: +\d+ kB\n)*?Rss: +([1-9]\d*) kB$/gm,
  )
  return [...ranges].map(([, start = '', end = '']) => [Number.parseInt(start, 16), Number.parseInt(end, 16)])
}

function readAt(memory: number, block: Buffer, length: number, position: number): number {
  try {
    return readSync(memory, block, 0, length, position)
  } catch {
    // Mapped and not readable, or gone since the map was read: a core dump would not hold it either.
    return 0
  }
}

/** Those that begin before `limit`; the next block counts the others. */
function countOf(bytes: Buffer, needle: Buffer, limit: number): number {
  let count = 0
  for (let at = bytes.indexOf(needle); at >= 0 && at < limit; at = bytes.indexOf(needle, at + 1)) count += 1
  return count
}
