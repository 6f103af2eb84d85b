/**
 * Protocol parameters as they came. One without a value counts as absent, an unknown one is ignored, and a known one
 * must not come twice (RFC 6749 sections 3.1, 3.2), except `resource` (RFC 8707 section 2).
 */
export type Parameters = ReadonlyMap<string, readonly string[]>

/** From pairs as a query or a form has them. */
export function parametersOf(pairs: Iterable<readonly [string, string]>): Parameters {
  const found = new Map<string, string[]>()
  for (const [name, value] of pairs) if (value !== '') found.set(name, [...(found.get(name) ?? []), value])
  return found
}

/** From a JSON object whose members are texts or lists of texts; what is neither is taken for its JSON. */
export const parametersOfObject = (members: Readonly<Record<string, unknown>>): Parameters =>
  parametersOf(
    Object.entries(members).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, textOf(one)]),
    ),
  )

/** Whether a member of a JSON object is what a form could have held: left out, text, or texts. */
export const isText = (value: unknown): boolean =>
  value == null || (Array.isArray(value) ? value : [value]).every((one) => typeof one === 'string')

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

/** The value of a parameter that came exactly once; otherwise null. */
export function single(parameters: Parameters, name: string): string | null {
  const values = parameters.get(name) ?? []
  return values.length === 1 ? (values[0] ?? null) : null
}

export const isRepeated = (parameters: Parameters, name: string): boolean => (parameters.get(name)?.length ?? 0) > 1
