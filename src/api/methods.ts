/** The methods that addresses are served for: what an answer of 405 names in `Allow`. */

interface ServedRoute {
  method: string
  /** As Elysia writes it: `/v1/tokens/:id`. */
  path: string
}

export class ServedMethods {
  readonly #forms: readonly (ServedRoute & { form: RegExp })[]
  readonly #fixed: ReadonlyMap<string, readonly string[]>

  constructor(routes: readonly ServedRoute[]) {
    this.#forms = routes.map(({ method, path }) => ({ method, path, form: formOf(path) }))
    const fixed = Map.groupBy(
      routes.filter(({ path }) => !/[:*]/.test(path)),
      ({ path }) => path,
    )
    // A path without parameters that is served for one method is no value of another path's parameter.
    this.#fixed = new Map([...fixed].map(([path, found]) => [path, methodsOf(found)]))
  }

  /** Null where no route has exactly this path. */
  ofFixedPath(pathname: string): readonly string[] | null {
    return this.#fixed.get(pathname) ?? null
  }

  /** The methods of a path without parameters, or else of every matching route; empty if none matches. */
  of(pathname: string): readonly string[] {
    return this.ofFixedPath(pathname) ?? methodsOf(this.#forms.filter(({ form }) => form.test(pathname)))
  }
}

/** Elysia answers HEAD wherever it answers GET. */
function methodsOf(routes: readonly ServedRoute[]): string[] {
  const methods = routes.map(({ method }) => method)
  return [...new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)].sort()
}

const formOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+').replace(/\*$/, '.*')}$`)
