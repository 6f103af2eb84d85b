/** Checks a provider's base URL: credentials must be encrypted in transit, except on this host. */
import { wrong } from './catalog/catalog-change.ts'

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * The URL without a slash at its end. Throws `invalid_parameter` for a URL that is not https (http is allowed on
 * loopback, or anywhere if the setting allows it) or has a user, a query or a fragment.
 */
export const checkedBaseUrl = (text: string, plainHttp: 'loopback' | 'anywhere'): string =>
  checkedUrl(text, plainHttp, { param: 'base_url', instead: 'api_key' }).replace(/\/+$/, '')

/** The same for another field, with its slash; `instead` is the field that credentials go into. */
export function checkedUrl(
  text: string,
  plainHttp: 'loopback' | 'anywhere',
  { param, instead }: { param: string; instead: string },
): string {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw wrong(param, 'Write an address that begins with https://')
  }
  if (url.username !== '' || url.password !== '') throw wrong(param, `Leave user and password out: use ${instead}`)
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) throw wrong(param, 'Leave query and fragment out')
  if (url.protocol === 'http:' && plainHttp === 'loopback' && !loopback.test(url.hostname)) {
    throw wrong(param, 'Only what is on this host may be reached without TLS: write https://')
  }
  return url.href
}
