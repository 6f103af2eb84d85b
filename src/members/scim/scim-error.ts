/** Errors as SCIM writes them (RFC 7644 section 3.12). */
import { failureOf, jsonResponse } from '../../api/answer.ts'

/** RFC 7644 table 9. */
type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue'

export class ScimError extends Error {
  override readonly name = 'ScimError'
  readonly status: number
  readonly scimType: ScimType | null

  constructor(status: number, scimType: ScimType | null, detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.status = status
    this.scimType = scimType
  }
}

export const invalidValue = (detail: string): ScimError => new ScimError(400, 'invalidValue', detail)

export const taken = (detail: string): ScimError => new ScimError(409, 'uniqueness', detail)

export const noSuch = (what: string): ScimError => new ScimError(404, null, `There is no such ${what}`)

export const scimJson = (status: number, body: object, headers: Record<string, string> = {}): Response => {
  const answer = jsonResponse(status, JSON.stringify(body), headers)
  answer.headers.set('content-type', 'application/scim+json; charset=utf-8')
  return answer
}

/** The answer to what was thrown. What is no fault of the caller is thrown again: the application logs and answers it. */
export function scimErrorAnswer(thrown: unknown): Response {
  const { status, scimType, message } = thrown instanceof ScimError ? thrown : ofFailure(thrown)
  const body = {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    ...(scimType === null ? {} : { scimType }),
    detail: message,
  }
  return scimJson(status, body, status === 401 ? { 'www-authenticate': 'Bearer realm="SCIM"' } : {})
}

function ofFailure(thrown: unknown): ScimError {
  const failure = failureOf(thrown)
  if (failure.status >= 500) throw thrown
  const unreadable = failure.code === 'invalid_json' || failure.code === 'json_too_deep'
  return new ScimError(failure.status, unreadable ? 'invalidSyntax' : null, failure.message)
}
