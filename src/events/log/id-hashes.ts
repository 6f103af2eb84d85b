/**
 * The identifiers of a segment as sorted 32-bit words, after a CRC-32 of them: 27 bits of the hash of an identifier
 * (MurmurHash3 x86 32, as `Bun.hash.murmur32v3`), then the number of the block that its record is in. A look-up reads
 * the words of a segment and opens only the blocks that they name. Against a Bloom filter this takes 8 bytes a record
 * instead of 5; in return it names the block, two lists are merged without reading a record, a removed identifier leaves
 * nothing behind, and a wrong match is rare (one in 15 000 for a segment of 4 096 records).
 */
const bytesOfWord = 4
/** Of a word: the number of a block, of at most 32. */
const blockBits = 31

export const hashOfId = (id: string): number => (Bun.hash.murmur32v3(id) & ~blockBits) >>> 0

/** The word of an identifier's hash in a block. */
export const wordOf = (hash: number, block: number): number => (hash | block) >>> 0

/** The words of several segments as those of one; `blocks` says which block of it each block becomes. */
export function mergeWords(lists: readonly { ids: Uint32Array; blocks: readonly number[] }[]): Uint32Array {
  const all = new Uint32Array(lists.reduce((sum, { ids }) => sum + ids.length, 0))
  let at = 0
  for (const { ids, blocks } of lists) {
    for (const word of ids) all[at++] = wordOf((word & ~blockBits) >>> 0, blocks[word & blockBits] ?? 0)
  }
  return sortedWords(all)
}

/** Sorts words in place, each once. */
export function sortedWords(words: Uint32Array): Uint32Array {
  words.sort()
  let kept = 0
  for (const word of words) {
    if (kept > 0 && words[kept - 1] === word) continue
    words[kept] = word
    kept += 1
  }
  return words.subarray(0, kept)
}

/** As they are stored: little-endian, after their checksum. */
export function bytesOfWords(words: Uint32Array): Uint8Array {
  const bytes = Buffer.allocUnsafe((1 + words.length) * bytesOfWord)
  for (let index = 0; index < words.length; index += 1)
    bytes.writeUInt32LE(words[index] ?? 0, (1 + index) * bytesOfWord)
  bytes.writeUInt32LE(Bun.hash.crc32(bytes.subarray(bytesOfWord)) >>> 0, 0)
  return bytes
}

const isSound = (bytes: Buffer): boolean =>
  bytes.length >= bytesOfWord &&
  bytes.length % bytesOfWord === 0 &&
  bytes.readUInt32LE(0) === Bun.hash.crc32(bytes.subarray(bytesOfWord)) >>> 0

/** Null where the bytes are not what was stored. */
export function wordsOfBytes(stored: Uint8Array): Uint32Array | null {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  if (!isSound(bytes)) return null
  const words = new Uint32Array(bytes.length / bytesOfWord - 1)
  for (let index = 0; index < words.length; index += 1) words[index] = bytes.readUInt32LE((1 + index) * bytesOfWord)
  return words
}

const everyBlock = 0xffff_ffff

/** The blocks that may hold all of these identifiers (bit n for block n); every one where the stored words are damaged. */
export function blocksWith(stored: Uint8Array, hashes: readonly number[]): number {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  if (!isSound(bytes)) return everyBlock
  let blocks = everyBlock
  for (const hash of hashes) blocks &= blocksWithOne(bytes, hash)
  return blocks >>> 0
}

/** By bisection. */
function blocksWithOne(bytes: Buffer, hash: number): number {
  const end = bytes.length / bytesOfWord
  let low = 1
  let high = end
  while (low < high) {
    const middle = (low + high) >>> 1
    if (bytes.readUInt32LE(middle * bytesOfWord) < hash) low = middle + 1
    else high = middle
  }
  let blocks = 0
  for (; low < end; low += 1) {
    const word = bytes.readUInt32LE(low * bytesOfWord)
    if (word - hash > blockBits) break
    blocks |= 1 << (word - hash)
  }
  return blocks
}
