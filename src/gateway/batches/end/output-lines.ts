/** Reads the output of a batch: one answer a line, by the id that the caller gave its request. */
import { isGiven, isObject, type JsonObject, parseObject, textOf } from '../../../languages/reading/json-value.ts'
import type { Line } from '../../../lib/http/line-reader.ts'

export interface OutputLine {
  /** Null where the line has none, or cannot be read. */
  readonly customId: string | null
  /** Null where the line cannot be read. */
  readonly text: string | null
  readonly line: JsonObject | null
  /** The answer of a request that succeeded; null for an error, or a line that cannot be read. */
  readonly answer: JsonObject | null
  /** The provider refused the request, or did not get to it. */
  readonly isError: boolean
}

const decoder = new TextDecoder()
/** In the beginning of a line that is too long to be read. */
const idForm = /"custom_id"\s*:\s*("(?:[^"\\]|\\.)*")/

export function readOutputLine({ bytes, isTooLong }: Line): OutputLine | null {
  const text = decoder.decode(bytes)
  if (!isTooLong && text.trim() === '') return null
  const line = isTooLong ? null : parseObject(text)
  if (line === null) return { customId: idWithin(text), text: null, line: null, answer: null, isError: false }
  const { response, error } = line
  const body = isObject(response) ? response.body : null
  const status = isObject(response) ? response.status_code : null
  const failed = isGiven(error) || !isObject(response) || (typeof status === 'number' && status >= 400)
  return {
    ...{ customId: textOf(line.custom_id), text, line, isError: failed },
    answer: !failed && isObject(body) ? body : null,
  }
}

function idWithin(text: string): string | null {
  const [, quoted] = idForm.exec(text.slice(0, 4096)) ?? []
  try {
    return quoted === undefined ? null : textOf(JSON.parse(quoted))
  } catch {
    return null
  }
}
