/**
 * The names of the tools that a request offers and an answer calls, in any container: some readers accept an object
 * with a list's positions as a list, or a list within a list.
 */
import { isObject, objectsOf } from '../languages/reading/json-value.ts'
import { offersTools } from '../languages/responses/offered-tools.ts'

const deepest = 64

/** Members of a tool in which no other one stands; what `function` and `custom` hold is read before. */
const notTools: ReadonlySet<string> = new Set([
  ...['function', 'custom', 'parameters', 'input_schema', 'format', 'arguments', 'input'],
])
const position = /^\d+$/

/** Tools of Gemini's language that the provider runs: each is a member, with settings inside. */
const hostedMembers: ReadonlySet<string> = new Set([
  ...['googleSearch', 'googleSearchRetrieval', 'enterpriseWebSearch', 'googleMaps', 'urlContext', 'fileSearch'],
  ...['codeExecution', 'computerUse', 'retrieval'],
])

/**
 * Every name of a tool, or the names in a container of tools. A tool that the provider runs itself has its type, or
 * its member's name, as its name; a namespace stands for the tools in it. Throws `RangeError` if it is nested too
 * deeply.
 */
export function namesOfTool(tool: unknown, depth = 0): string[] {
  if (depth > deepest) throw new RangeError('A list of tools is nested too deep to be inspected')
  if (typeof tool === 'string') return [tool]
  if (Array.isArray(tool)) return tool.flatMap((inner) => namesOfTool(inner, depth + 1))
  if (!isObject(tool)) return []
  const names = ownNames(tool, depth)
  const isContainer = names.length === 0
  for (const key in tool) {
    const value = tool[key]
    if (hostedMembers.has(key) && typeof value === 'object' && value !== null) names.push(key)
    else if (key === 'functionDeclarations') names.push(...namesOfTool(value, depth + 1))
    else if (position.test(key)) names.push(...namesOfTool(value, depth + 1))
    else if (isContainer && typeof value === 'object' && value !== null && !notTools.has(key)) {
      const within = namesOfTool(value, depth + 1)
      names.push(...(within.length === 0 ? [key] : within))
    }
  }
  return names
}

/** The names in an object: if it has several, one reader takes one, and another reader another. */
function ownNames(tool: Record<string, unknown>, depth: number): string[] {
  const { type, name, tools } = tool
  if (type === 'namespace' && typeof tools === 'object' && tools !== null) return namesOfTool(tools, depth + 1)
  const names = [...namesOfTool(tool.function, depth + 1), ...namesOfTool(tool.custom, depth + 1)]
  if (typeof name === 'string') names.push(name)
  return names.length === 0 && typeof type === 'string' ? [type] : names
}

/**
 * The names of `tools` as chat, responses and messages write them, of chat's `functions`, which came before, and of
 * items of a responses input that offer some.
 */
export const offeredTools = (body: Readonly<Record<string, unknown>> | null): string[] => [
  ...namesOfTool(body?.tools),
  ...namesOfTool(body?.functions),
  ...toolsInInput(body?.input),
]

export const toolsInInput = (input: unknown): string[] =>
  objectsOf(input)
    .filter(offersTools)
    .flatMap(({ tools }) => namesOfTool(tools))

/** The types of items that call a tool, in responses and messages. */
const callTypes: ReadonlySet<unknown> = new Set([
  'function_call',
  'custom_tool_call',
  'mcp_call',
  'tool_use',
  'server_tool_use',
  'mcp_tool_use',
])

/** The names of the tools that a whole answer calls, in any language. Throws as `namesOfTool`. */
export const calledTools = ({ choices, output, content, candidates }: Readonly<Record<string, unknown>>): string[] =>
  [choices, output, content, candidates].flatMap((list) => toolsCalledIn(list))

/**
 * The names of the tools that are called in a part of an answer. Names in deltas may be incomplete and are left out.
 */
export function toolsCalledIn(value: unknown, depth = 0): string[] {
  if (depth > deepest) throw new RangeError('An answer is nested too deep to be inspected')
  if (Array.isArray(value)) return value.flatMap((inner) => toolsCalledIn(inner, depth + 1))
  if (!isObject(value)) return []
  if (callTypes.has(value.type)) return namesOfTool(value)
  const called: string[] = []
  for (const key in value) {
    if (key === 'tool_calls' || key === 'function_call' || key === 'functionCall')
      called.push(...namesOfTool(value[key]))
    else if (key !== 'delta') called.push(...toolsCalledIn(value[key], depth + 1))
  }
  return called
}
