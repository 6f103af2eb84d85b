import { Failure } from '../../failure.ts'
import { announcedLength } from '../../lib/http/announced-length.ts'

/** The text of an answer. Throws `mcp.result_too_large` as soon as it exceeds the limit. */
export async function boundedText(answer: Response, limit: number): Promise<string> {
  if (answer.body === null) return ''
  // No more than the announced length is read, so it can be read at once.
  const length = announcedLength(answer.headers)
  if (length !== null && length <= limit) return await answer.text()
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of answer.body) {
    size += part.length
    if (size > limit) throw new Failure('mcp.result_too_large')
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
