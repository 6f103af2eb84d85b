/** What stands in the writable memory of a process, as a core dump of it would have it. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

const blockBytes = 8 * 1024 * 1024
const pageBytes = 4096

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

/** Writable memory that is there, page by page: what is only reserved would take long to read and holds nothing. */
function writableRanges(pid: number): [number, number][] {
  const maps = readFileSync(`/proc/${pid}/maps`, 'latin1').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)
  const pagemap = openSync(`/proc/${pid}/pagemap`, 'r')
  try {
    return [...maps].flatMap(([, start = '', end = '']) =>
      presentRanges(pagemap, Number.parseInt(start, 16), Number.parseInt(end, 16)),
    )
  } finally {
    closeSync(pagemap)
  }
}

/** The kernel has eight bytes on each page; the highest two bits say that it is in memory, or in the swap. */
function presentRanges(pagemap: number, start: number, end: number): [number, number][] {
  const found: [number, number][] = []
  const entries = Buffer.alloc(blockBytes)
  for (let at = start; at < end; ) {
    const wanted = Math.min(entries.length, ((end - at) / pageBytes) * 8)
    const pages = readAt(pagemap, entries, wanted, (at / pageBytes) * 8) / 8
    if (pages === 0) break
    for (let page = 0; page < pages; page++, at += pageBytes) {
      if ((entries.readUInt8(page * 8 + 7) & 0xc0) === 0) continue
      const last = found.at(-1)
      if (last?.[1] === at) last[1] = at + pageBytes
      else found.push([at, at + pageBytes])
    }
  }
  return found
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
