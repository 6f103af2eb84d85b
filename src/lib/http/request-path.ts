/**
 * Requests that name no host, or none that is one: HTTP/1.0 without `Host`, as some health checks of load balancers are,
 * and an empty one. Their address is a path alone.
 */

/** The path of a request's address, without making a URL object of it. */
export function pathOf(url: string): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  if (start < 0) return '/'
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}

/** Whether `Host` is given more than once, or names more than one: the listener joins them by a comma, which no host has. */
export const namesSeveralHosts = ({ headers }: Pick<Request, 'headers'>): boolean =>
  headers.get('host')?.includes(',') === true

/** Elysia looks for the path behind this many characters, which a very short host does not fill. */
const shortestOrigin = 'http://loca'.length

/** The request with an address that `URL` and Elysia can read; itself where it has one. */
export function withAddress(request: Request): Request {
  const { url } = request
  const isReadable = URL.canParse(url) && url.indexOf('/', 'https://'.length) >= shortestOrigin
  return isReadable ? request : new Request(`http://localhost${url.replace(/^[a-z]+:\/\/[^/]*/, '')}`, request)
}
