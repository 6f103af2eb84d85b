/**
 * Finds tools by what they do: BM25 over the names and descriptions of tools and of their arguments. A name counts more
 * than a description. Words match by their beginnings too (`issue` finds `issues`), and `createIssue` and `create_issue`
 * are two words.
 *
 * Of a description only the beginning counts: a server cannot rank first by a long list of words.
 */
import type MiniSearch from 'minisearch'
import type { Json } from '../connection.ts'
import { isJson } from '../protocol.ts'

/** A tool as callers see it, under its published name. */
export type Tool = Json & { readonly name: string }

/** UTF-16 units of a description that are indexed. */
const indexedUnits = 1000
const mostArguments = 50
/** UTF-16 units. */
export const longestQuery = 500
const mostQueryWords = 32
/** Tools that are indexed at once, some 2 ms of work; then everything else has its turn. */
const toolsAtOnce = 50

interface Indexed {
  readonly id: number
  readonly name: string
  readonly description: string
  readonly parameters: string
}

const boost = { name: 3, description: 1, parameters: 0.5 }

/** Loaded with the first search: most gateways have none. */
const library = (): typeof MiniSearch => require('minisearch')

export class ToolIndex {
  readonly tools: readonly Tool[]
  readonly #search: MiniSearch<Indexed>

  private constructor(tools: readonly Tool[], search: MiniSearch<Indexed>) {
    this.tools = tools
    this.#search = search
  }

  static async of(tools: readonly Tool[]): Promise<ToolIndex> {
    const Search = library()
    const search = new Search<Indexed>({
      fields: ['name', 'description', 'parameters'],
      tokenize: wordsOf,
      processTerm: termOf,
    })
    await search.addAllAsync(tools.map(indexed), { chunkSize: toolsAtOnce })
    return new ToolIndex(tools, search)
  }

  /** The tools that match, best first. */
  *find(query: string): Generator<Tool> {
    const options = { boost, prefix: (word: string) => word.length > 2 }
    const words = wordsOf(query).slice(0, mostQueryWords).join(' ')
    for (const { id } of this.#search.search(words, options)) {
      const tool = this.tools[id]
      if (tool !== undefined) yield tool
    }
  }
}

function indexed(tool: Tool, id: number): Indexed {
  const { name, title, description, inputSchema } = tool
  const properties = isJson(inputSchema) && isJson(inputSchema.properties) ? inputSchema.properties : {}
  const parameters = Object.entries(properties)
    .slice(0, mostArguments)
    .map(([parameter, schema]) => `${parameter} ${isJson(schema) ? beginningOf(schema.description) : ''}`)
  return {
    id,
    name: `${name} ${beginningOf(title)}`,
    description: beginningOf(description),
    parameters: beginningOf(parameters.join(' ')),
  }
}

const beginningOf = (text: unknown): string => (typeof text === 'string' ? text.slice(0, indexedUnits) : '')

/** Words that stand in every description and query. */
const commonWords: ReadonlySet<string> = new Set(
  'a an and are as at be by for from if in into is it its of on or that the this to with'.split(' '),
)

const termOf = (word: string): string | null => {
  const term = word.toLowerCase()
  return commonWords.has(term) ? null : term
}

const wordsOf = (text: string): string[] =>
  text.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2').match(/[\p{L}\p{N}]+/gu) ?? []
