/** The browser side: the session cookie and others like it (RFC 6265), and the origin of a request. */

const sessionCookie = 'gatehouse_session'

/** Over HTTPS no neighbouring host and no plain HTTP can plant a cookie of this name (RFC 6265bis section 4.1.3.2). */
const nameOf = (cookie: string, baseUrl: string): string =>
  new URL(baseUrl).protocol === 'https:' ? `__Host-${cookie}` : cookie

/**
 * The value of a cookie, or null. Two cookies of the name count as none: one of them was planted, and it is unknown
 * which.
 */
export function readCookie(request: Request, cookie: string, baseUrl: string): string | null {
  const name = nameOf(cookie, baseUrl)
  const values = (request.headers.get('cookie') ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  const [value] = values
  return values.length === 1 && value !== undefined ? value : null
}

/** The value of the session cookie, or null. */
export const readSessionCookie = (request: Request, baseUrl: string): string | null =>
  readCookie(request, sessionCookie, baseUrl)

/** Whether an address is this host itself: the only place where plain HTTP keeps a secret. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

const attributes = (baseUrl: string): string => `HttpOnly; SameSite=Lax; Path=/${isLoopback(baseUrl) ? '' : '; Secure'}`

/** `Set-Cookie` for a secret that the browser keeps. */
export const keepCookie = (cookie: string, secret: string, seconds: number, baseUrl: string): string =>
  `${nameOf(cookie, baseUrl)}=${secret}; Max-Age=${seconds}; ${attributes(baseUrl)}`

/** `Set-Cookie` that makes the browser forget. */
export const forgetCookie = (cookie: string, baseUrl: string): string =>
  `${nameOf(cookie, baseUrl)}=; Max-Age=0; ${attributes(baseUrl)}`

/** `Set-Cookie` for a new session. */
export const keepSession = (secret: string, seconds: number, baseUrl: string): string =>
  keepCookie(sessionCookie, secret, seconds, baseUrl)

/** `Set-Cookie` that ends a session in the browser. */
export const forgetSession = (baseUrl: string): string => forgetCookie(sessionCookie, baseUrl)

/**
 * Whether a request comes from our page. Browsers say so in Sec-Fetch-Site (W3C Fetch Metadata), which no script can
 * set. Browsers without it, or a console on its own origin, are recognised by Origin (RFC 6454). A request with
 * neither does not come from a page.
 */
export function isFromOurPage(request: Request, origins: readonly string[]): boolean {
  if (request.headers.get('sec-fetch-site') === 'same-origin') return true
  const origin = request.headers.get('origin')
  return origin !== null && origins.includes(origin)
}

/** The origins our pages are served from. */
export const ownOrigins = (baseUrl: string, consoleUrl: string): string[] => [
  new URL(baseUrl).origin,
  new URL(consoleUrl).origin,
]
