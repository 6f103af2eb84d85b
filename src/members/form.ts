/** Reads what an HTML form sent (application/x-www-form-urlencoded, WHATWG URL section 5). */
import { readBytes, requireContentType } from '../api/body.ts'
import { Failure } from '../failure.ts'

const formLimitBytes = 16 * 1024

/** The fields by name. Throws `unsupported_media_type`, `request_too_large`, `invalid_parameter` for a repeated one. */
export async function readForm(request: Request): Promise<Record<string, string>> {
  requireContentType(request, 'application/x-www-form-urlencoded')
  const text = new TextDecoder().decode(await readBytes(request, formLimitBytes))
  const fields = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (fields.has(name)) throw new Failure('invalid_parameter', { message: 'Given more than once' })
    fields.set(name, value)
  }
  return Object.fromEntries(fields)
}
