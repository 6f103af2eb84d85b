/** An archive of records as it is read for verification, wherever it is. */
import { chainedText } from '../formats/items.ts'
import { isProofLine, linesOfProof, type Proof, readProof } from '../formats/proof.ts'

/** The lines of one parcel, with their proof. */
export interface Part {
  /** As a person would look for it: an object, or a line of a file. */
  name: string
  /** The texts that were chained. */
  texts: readonly string[]
  /** Null where it is not there, or is none. */
  proof: Proof | null
}

export interface Archive {
  /** Every proof, in the order of the record; for checkpoints and ends of chains. */
  proofs(): AsyncGenerator<Proof, void, undefined>
  /** Every part, in the order of the record. */
  parts(): AsyncGenerator<Part, void, undefined>
}

export const linesOfText = (text: string): string[] => text.split('\n').filter((line) => line !== '')

/** The texts that lines stand for. */
export const textsOf = (lines: readonly string[]): string[] => lines.map(chainedText)

/** A test event as a receiver got it; the record of the test says besides what the receiver answered. */
function isTestLine(line: string): boolean {
  if (!line.includes('"sink.tested"')) return false
  try {
    const { event_type: type, details }: { event_type?: unknown; details?: object } = JSON.parse(line)
    return type === 'sink.tested' && !Object.hasOwn(details ?? {}, 'error')
  } catch {
    // An altered line is no test: its digest tells.
    return false
  }
}

/** Without lines of a parcel that broke off, which stand before it where it was sent again. */
function withoutRepeated(texts: readonly string[], proof: Proof | null): readonly string[] {
  const excess = proof === null ? 0 : texts.length - linesOfProof(proof)
  const own = excess > 0 ? new Set(texts.slice(excess)) : null
  return own !== null && texts.slice(0, excess).every((text) => own.has(text)) ? texts.slice(excess) : texts
}

/**
 * An archive whose proofs are lines of the same stream: each proves the lines before it. Test events are none of it.
 * `lines` begins anew each time.
 */
export const streamArchive = (lines: () => AsyncGenerator<string, void, undefined>): Archive => ({
  async *proofs() {
    for await (const line of lines()) {
      const proof = isProofLine(line) ? readProof(line) : null
      if (proof !== null) yield proof
    }
  },
  async *parts() {
    let texts: string[] = []
    let number = 0
    let first = 1
    for await (const line of lines()) {
      number += 1
      if (isProofLine(line)) {
        const proof = readProof(line)
        yield { name: `line ${first}`, texts: withoutRepeated(texts, proof), proof }
        texts = []
        first = number + 1
      } else if (!isTestLine(line)) texts.push(chainedText(line))
    }
    if (texts.length > 0) yield { name: `line ${first}`, texts, proof: null }
  },
})

/** An archive of objects: `names` gives them in order, `read` the text of one. */
export const objectArchive = (
  names: () => AsyncGenerator<{ name: string; first: number; next: number; isProof: boolean }, void, undefined>,
  read: (name: string) => Promise<string>,
): Archive => {
  const proofOf = async (name: string): Promise<Proof | null> => readProof(await read(name))
  return {
    async *proofs() {
      for await (const { name, isProof } of names()) {
        const proof = isProof ? await proofOf(name) : null
        if (proof !== null) yield proof
      }
    },
    async *parts() {
      let records: { name: string; first: number; next: number } | null = null
      const alone = async function* () {
        if (records !== null)
          yield { name: records.name, texts: textsOf(linesOfText(await read(records.name))), proof: null }
        records = null
      }
      // The object stands before its proof, because `.ndjson` comes before `.proof`.
      for await (const { name, first, next, isProof } of names()) {
        if (!isProof) {
          yield* alone()
          records = { name, first, next }
          continue
        }
        if (records !== null && (records.first !== first || records.next !== next)) yield* alone()
        const texts = records === null ? [] : textsOf(linesOfText(await read(records.name)))
        records = null
        yield { name, texts, proof: await proofOf(name) }
      }
      yield* alone()
    },
  }
}
