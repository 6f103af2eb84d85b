/**
 * Finds the route of a request by Elysia, which matches paths here and nothing else: it neither parses nor validates,
 * because its own errors echo what was sent.
 *
 * A matcher is made for each area of the paths (`/v1/tokens`), at the area's first request: to match the two hundred
 * paths of a control plane takes as long to prepare as to open its databases, and a start needs those few by which
 * gateways connect.
 */
import { Elysia } from 'elysia'

export interface RoutedCall {
  method: string
  /** OpenAPI form: `/v1/tokens/{id}`. */
  path: string
  handle(request: Request, params: unknown): Promise<Response> | Response
}

export interface RouterOptions {
  calls: readonly RoutedCall[]
  /** Answers what a call threw. */
  failed(error: unknown, request: Request): Response
  /** Answers where there is no such call; `allow` are the methods that the address is served for. */
  notServed(request: Request, allow: readonly string[]): Response
}

export function createRouter({ calls, failed, notServed }: RouterOptions): (request: Request) => Promise<Response> {
  const areas = Map.groupBy(calls, ({ path }) => areaOf(path))
  // A console at the root has all addresses that nobody else has.
  const everywhere = calls.filter(({ path }) => /[*{]/.test(areaOf(path)))
  const withoutParameters = calls.filter(({ path }) => !path.includes('{'))
  const fixedPaths = new Map<string, string[] | null>(withoutParameters.map(({ path }) => [path, null]))
  /** Null where no path of a call is this one; found at the first request, as all that is made here. */
  const methodsOfFixed = (pathname: string): string[] | null => {
    const known = fixedPaths.get(pathname)
    if (known !== null) return known ?? null
    const methods = methodsOf(withoutParameters, pathname)
    fixedPaths.set(pathname, methods)
    return methods
  }
  const matchers = new Map<string, Elysia>()
  const matcher = (calls: readonly RoutedCall[], isSecure: boolean): Elysia => {
    // It looks for the path behind eleven characters, or else seven: the first misses it where the host of an `http`
    // address has three letters or fewer, the second finds none in an `https` one.
    const server = new Elysia({ normalize: false, strictPath: true, handler: { standardHostname: isSecure } })
    // Before the routes: Elysia's hooks reach only what is registered after them.
    server.onError(({ request, error, code }) =>
      code === 'NOT_FOUND'
        ? notServed(request, methodsOf(calls, new URL(request.url).pathname))
        : failed(error, request),
    )
    for (const { method, path, handle } of calls) {
      server.route(method, elysiaPath(path), ({ request, params }) => handle(request, params), { parse: 'none' })
    }
    return server
  }
  return async (request) => {
    const { pathname, protocol } = new URL(request.url)
    // Otherwise a parameter of another path would take the name for its value.
    const methods = methodsOfFixed(pathname)
    if (methods?.includes(request.method) === false) return notServed(request, methods)
    const named = areaOf(pathname)
    const area = areas.has(named) ? named : '*'
    const key = `${protocol}${area}`
    const known =
      matchers.get(key) ?? matcher([...new Set([...(areas.get(area) ?? []), ...everywhere])], protocol === 'https:')
    matchers.set(key, known)
    return await known.handle(request)
  }
}

/** `/v1/tokens/{id}` is in `v1/tokens`, `/console/assets/{name}` in `console`. */
function areaOf(path: string): string {
  const [, first = '', second = ''] = path.split('/', 3)
  return first === 'v1' ? `v1/${second}` : first
}

/** `/v1/tokens/{id}` as Elysia writes it: `/v1/tokens/:id`. */
const elysiaPath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ':$1')

/** The methods an address is served for; Elysia answers HEAD wherever it answers GET. */
function methodsOf(calls: readonly RoutedCall[], pathname: string): string[] {
  const found = calls.filter(({ path }) => pathForm(path).test(pathname)).map(({ method }) => method)
  return [...new Set(found.includes('GET') ? [...found, 'HEAD'] : found)].sort()
}

const pathForm = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replaceAll('.', '\\.')
      .replaceAll(/\{\w+\}/g, '[^/]+')
      .replace(/\*$/, '.*')}$`,
  )
