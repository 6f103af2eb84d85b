/** The version of a record as its ETag, and conditional changes by it (RFC 9110 sections 8.8.3, 13.1.1). */
import { Failure } from '../failure.ts'

export const entityTag = (version: number): string => `"${version}"`

/**
 * Throws `version_mismatch` where `If-Match` names another version than the present one. No header matches every
 * version; a version without its quotes is taken for the tag it means.
 */
export function requireVersion(headers: Headers, version: number): void {
  const sent = headers.get('if-match')
  if (sent === null) return
  const accepted = ['*', entityTag(version), String(version)]
  if (!sent.split(',').some((tag) => accepted.includes(tag.trim()))) throw new Failure('version_mismatch')
}
