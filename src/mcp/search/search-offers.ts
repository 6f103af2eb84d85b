/**
 * The two tools that stand for all others where tools are searched: `search_tools` finds tools, `call_tool` calls one.
 * No server can offer them: the published name of a server's tool holds two underscores in a row.
 */
import { Failure } from '../../failure.ts'
import type { Json } from '../connection.ts'
import { isJson } from '../protocol.ts'
import type { Tool } from './tool-index.ts'

export const searchTool = 'search_tools'
export const callTool = 'call_tool'

export const mostFound = 20
const usuallyFound = 5
const mostServersNamed = 50

/** `servers`: the names of those whose tools are searched. */
export function searchOffers(servers: readonly string[]): Json[] {
  const named = servers.slice(0, mostServersNamed).join(', ')
  return [
    {
      name: searchTool,
      title: 'Search tools',
      description: `Finds tools by what they do, and returns their names, descriptions and input schemas, best first. Call one that was found with ${callTool}. There are tools of these servers: ${named}${servers.length > mostServersNamed ? ' and others' : ''}.`,
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string', description: 'What the tool should do, in a few words: "create an issue"' },
          limit: { type: 'integer', minimum: 1, maximum: mostFound, default: usuallyFound },
        },
        required: ['query'],
      },
    },
    {
      name: callTool,
      title: 'Call a tool',
      description: `Calls a tool that ${searchTool} found.`,
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'The name of the tool, as it was found' },
          arguments: { type: 'object', description: 'What its input schema asks for' },
        },
        required: ['name'],
      },
    },
  ]
}

/** How many tools a search asks for; null for what is no such number. */
export function limitOf(given: unknown): number | null {
  if (given === undefined) return usuallyFound
  return typeof given === 'number' && Number.isInteger(given) && given >= 1 && given <= mostFound ? given : null
}

/** What a model needs of a tool to call it. */
export const foundTool = ({ name, description, inputSchema }: Tool): Json => ({ name, description, inputSchema })

interface Asked {
  readonly method: string
  readonly params: Json
}

export const isSearch = ({ method, params }: Asked): boolean => method === 'tools/call' && params.name === searchTool

/** The parameters of the call that `call_tool` makes; those that were given for any other tool. */
export function directCall(params: Json): Json {
  if (params.name !== callTool) return params
  const given = isJson(params.arguments) ? params.arguments : {}
  const { name, arguments: inner = {} } = given
  if (typeof name !== 'string') {
    throw new Failure('invalid_parameter', {
      param: 'arguments.name',
      message: 'Name the tool, as search_tools found it',
    })
  }
  if (!isJson(inner)) {
    throw new Failure('invalid_parameter', { param: 'arguments.arguments', message: 'arguments must be an object' })
  }
  return { ...params, name, arguments: inner }
}
