/**
 * Requests with a missing, empty or invalid host, such as HTTP/1.0 health checks of load balancers. Their address is
 * only a path.
 */

/** The path of a request's address, without creating a URL object. */
export function pathOf(url: string): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  if (start < 0) return '/'
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}

/** Whether `Host` is given more than once: the listener joins the values with a comma, which no host name has. */
export const namesSeveralHosts = ({ headers }: Pick<Request, 'headers'>): boolean =>
  headers.get('host')?.includes(',') === true

/** Elysia searches for the path after this many characters; a very short host is shorter. */
const shortestOrigin = 'http://loca'.length

/** The request with an address that `URL` and Elysia can read; unchanged if it has one. */
export function withAddress(request: Request): Request {
  const { url } = request
  const isReadable = URL.canParse(url) && url.indexOf('/', 'https://'.length) >= shortestOrigin
  return isReadable ? request : new Request(`http://localhost${url.replace(/^[a-z]+:\/\/[^/]*/, '')}`, request)
}
