/**
 * Where a person is redirected to (oauth/README.md). A redirect URI is compared as a string and never parsed for
 * comparing (RFC 9700 section 4.1.3), so it is registered in the one spelling that parsers agree on: no upper-case
 * host, default port, dot segment or backslash. Loopback ports are exact too, a deliberate deviation from RFC 8252
 * section 7.3, but for clients that bring their own metadata (`clients/unvetted-client.ts`).
 */

const loopbackHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
/** What the answer adds to the query (RFC 6749 section 4.1.2, RFC 9207 section 2). */
const answerParameters = ['code', 'state', 'iss', 'error', 'error_description', 'error_uri']
const longest = 2000

/** Why a text cannot be registered as a redirect URI; null if it can. */
export function redirectUriFault(text: string): string | null {
  if (text.length > longest) return `A redirect URI has at most ${longest} characters`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) return 'Write an absolute address: https://app.example.com/callback'
  if (text.includes('#')) return 'A redirect URI has no fragment'
  if (url.username !== '' || url.password !== '' || authorityOf(text).includes('@')) {
    return 'A redirect URI has no user information'
  }
  const secure = url.protocol === 'https:' || (url.protocol === 'http:' && loopbackHosts.has(url.hostname))
  if (!secure) return 'Use https://; http:// only for localhost, 127.0.0.1 and [::1]'
  if (url.hostname.includes('*')) return 'A redirect URI has no wildcard: it is matched exactly'
  if (url.href !== text && url.href !== `${text}/`) return `Write it as browsers do: ${url.href}`
  const taken = answerParameters.find((name) => url.searchParams.has(name))
  return taken === undefined ? null : `The query may not hold ${taken}: the answer adds it`
}

/** Whether a program on the person's own host waits there. */
export function isLoopbackRedirect(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.protocol === 'http:' && loopbackHosts.has(url.hostname)
}

const authorityOf = (text: string): string => /^[a-z]+:\/\/([^/?#]*)/i.exec(text)?.[1] ?? ''

/**
 * The address with the answer in its query, what stood there before kept (RFC 6749 section 4.1.2). Spaces are written
 * %20, which every decoder reads alike; null values are left out.
 */
export function redirectWith(redirectUri: string, answer: Readonly<Record<string, string | null>>): string {
  const added = Object.entries(answer)
    .flatMap(([name, value]) => (value === null ? [] : [`${name}=${encodeURIComponent(value)}`]))
    .join('&')
  if (!redirectUri.includes('?')) return `${redirectUri}?${added}`
  return /[?&]$/.test(redirectUri) ? redirectUri + added : `${redirectUri}&${added}`
}
