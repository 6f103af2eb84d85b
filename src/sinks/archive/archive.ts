/** An archive of records as it is read for verification, wherever it is. */
import { chainedText } from '../formats/items.ts'
import { isProofLine, type Proof, readProof } from '../formats/proof.ts'

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

/** An archive whose proofs are lines of the same stream: each proves the lines before it. `lines` begins anew each time. */
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
        yield { name: `line ${first}`, texts, proof: readProof(line) }
        texts = []
        first = number + 1
      } else texts.push(chainedText(line))
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
