/**
 * What tool search saves and costs, with 400 tools on 8 servers: the tokens of the definitions that a model is shown
 * with every request, listed and searched; the time to index all tools and to search them; and the memory of the index.
 *
 *   bun test/load/costs/tool-search.ts
 */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { foundTool, searchOffers } from '../../../src/mcp/search/search-offers.ts'
import { ToolIndex } from '../../../src/mcp/search/tool-index.ts'

const verbs = ['create', 'list', 'get', 'update', 'delete', 'search', 'merge', 'close', 'assign', 'export']
const things = ['issue', 'pull_request', 'branch', 'release', 'workflow']
const servers = ['github', 'jira', 'gitlab', 'linear', 'sentry', 'notion', 'slack', 'drive']

const text = (description: string) => ({ type: 'string', description })

/** Of the length that definitions of public servers have: about 150 tokens each. */
const tools = servers.flatMap((server) =>
  verbs.flatMap((verb) =>
    things.map((thing) => {
      const words = thing.replaceAll('_', ' ')
      return {
        name: `${server}__${verb}_${thing}`,
        description: `Use this to ${verb} a ${words} of a project in ${server}. Returns the ${words} with its id, its state, its author and the time of its last change. Needs the permission to write to the project when it changes something.`,
        inputSchema: {
          type: 'object',
          properties: {
            owner: text('The account that owns the project (not case sensitive)'),
            project: text('The name of the project, without its owner'),
            [`${thing}_id`]: { type: 'integer', description: `The number that identifies the ${words}` },
            state: { type: 'string', enum: ['open', 'closed', 'all'], description: `Only the ${words} in this state` },
            page: { type: 'integer', minimum: 1, description: 'The page of the result, from 1' },
          },
          required: ['owner', 'project'],
        },
      }
    }),
  ),
)

const tokensOf = (value: unknown): number => countTokens(JSON.stringify(value))
const milliseconds = async (work: () => unknown, times: number): Promise<number> => {
  await work()
  const { user, system } = process.cpuUsage()
  for (let turn = 0; turn < times; turn++) await work()
  const used = process.cpuUsage()
  return (used.user - user + used.system - system) / 1000 / times
}
const find = (index: ToolIndex, query: string) => [...index.find(query).take(5)]

const listed = tokensOf(tools)
const searched = tokensOf(searchOffers(servers))
const query = 'merge a pull request in github'
Bun.gc(true)
const before = process.memoryUsage().heapUsed
const index = await ToolIndex.of(tools)
Bun.gc(true)
const bytes = process.memoryUsage().heapUsed - before
const found = find(index, query)
const answer = tokensOf(JSON.stringify(found.map(foundTool)))
const rightFirst = servers.flatMap((server) =>
  verbs.flatMap((verb) =>
    things.map((thing) => {
      const [first] = find(index, `${verb} ${thing.replaceAll('_', ' ')} ${server}`)
      return first?.name === `${server}__${verb}_${thing}`
    }),
  ),
)

const lines = {
  tools: tools.length,
  'tokens of all definitions': listed,
  'tokens of the two tools': searched,
  'tokens of one answer with 5 tools': answer,
  'saved in a request after one search': `${(100 * (1 - (searched + answer) / listed)).toFixed(1)} %`,
  'right tool first, of 400 queries': rightFirst.filter(Boolean).length,
  'to index all, ms': (await milliseconds(() => ToolIndex.of(tools), 10)).toFixed(2),
  'to search, ms': (await milliseconds(() => find(index, query), 200)).toFixed(3),
  'memory of the index, kB': Math.round(bytes / 1024),
}
for (const [name, value] of Object.entries(lines)) console.log(`${name.padEnd(38)} ${value}`)
