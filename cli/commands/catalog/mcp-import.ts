/** `gatehouse mcp-server import FILE`: makes the MCP servers that the file of a client names. */
import { readFileSync } from 'node:fs'
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { mcpServerResource } from '../../../src/mcp/catalog/server-resource.ts'
import type { Api } from '../../command/api.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { ApiRefusal } from '../../command/report.ts'
import type { Input } from '../../terminal/input.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import {
  type ClientFile,
  type ClientServer,
  carry,
  type Resolve,
  readClientFile,
  variableOf,
} from './client-servers.ts'

interface Outcome {
  name: string
  /** `planned` in a dry run. */
  result: 'imported' | 'planned' | 'exists' | 'refused'
  lost: readonly string[]
  reason?: string
}

export const importServers = (terminal: Terminal, input: Input) =>
  defineCommand({
    meta: { description: "Add the MCP servers of a client's file: mcp.json, claude_desktop_config.json" },
    args: {
      file: { type: 'positional', required: true, description: 'The file' },
      'dry-run': { type: 'boolean', description: 'Say what would be done, by the same checks, and do nothing' },
      ...recordFlags,
    },
    async run({ args }) {
      const file = readClientFile(textOf(args.file))
      const api = connect(args, terminal)
      const importing: Importing = {
        inputs: file.inputs,
        resolve: resolver(file.inputs, terminal, input, args['dry-run'] === true),
        planned: args['dry-run'] ? new Set() : null,
        api,
      }
      const outcomes: Outcome[] = []
      for (const server of file.servers) {
        const outcome = await importOne(server, importing)
        outcomes.push(outcome)
        if (!args.json) await terminal.write(linesOf(outcome))
      }
      if (args.json) await terminal.write(`${JSON.stringify({ servers: outcomes })}\n`)
      const failed = outcomes.filter(({ result }) => result === 'refused').length
      if (failed > 0)
        throw new Failure('usage', {
          message: `${failed} of ${outcomes.length} servers ${args['dry-run'] ? 'would not be' : 'were not'} imported`,
        })
    },
  })

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new Failure('usage', { message: `The file ${path} cannot be read` })
  }
}

/** Each value is asked for once; a dry run asks for none, and takes a stand-in. */
function resolver(inputs: ClientFile['inputs'], terminal: Terminal, input: Input, isDry: boolean): Resolve {
  const known = new Map<string, string>()
  return async ({ name, isInput }) => {
    const value = known.get(name) ?? terminal.environment[variableOf(name)]
    if (value !== undefined || !input.interactive) return value ?? null
    if (isDry) return 'x'
    terminal.note(`${printable(isInput ? (inputs.get(name)?.description ?? name) : name)}:`)
    const typed = await input.hiddenLine()
    known.set(name, typed)
    return typed
  }
}

interface Importing {
  inputs: ClientFile['inputs']
  resolve: Resolve
  /** The names of records that a dry run would have made; null where they are made. */
  planned: Set<unknown> | null
  api: Api
}

async function importOne(server: ClientServer, { inputs, resolve, planned, api }: Importing): Promise<Outcome> {
  const { name } = server
  try {
    const { body, lost } = await carry(server, inputs, resolve)
    const call = { method: 'POST' as const, path: mcpServerResource.path, body }
    if (planned === null) {
      await api.json(call, z.looseObject({}))
      return { name, result: 'imported', lost }
    }
    if (planned.has(body.name)) return { name, result: 'exists', lost: [] }
    await api.json({ method: 'POST', path: '/v1/together', body: { calls: [call], dry_run: true } }, z.looseObject({}))
    planned.add(body.name)
    return { name, result: 'planned', lost }
  } catch (thrown) {
    // What is wrong with one server keeps none of the others; what is wrong with the control plane does.
    const isOfServer = thrown instanceof ApiRefusal && [400, 409, 422].includes(thrown.status)
    if (isOfServer && thrown.code === 'conflict') return { name, result: 'exists', lost: [] }
    if (isOfServer || (thrown instanceof Failure && thrown.code === 'usage')) {
      return { name, result: 'refused', lost: [], reason: thrown.message }
    }
    throw thrown
  }
}

const signs = { imported: '+', planned: '+', exists: '=', refused: '!' } as const

function linesOf({ name, result, lost, reason }: Outcome): string {
  const why =
    result === 'exists' ? ': there is a server of this name' : reason === undefined ? '' : `: ${printable(reason)}`
  const lines = [
    `${signs[result]} ${printable(name)}${why}`,
    ...lost.map((line) => `    not carried over: ${printable(line)}`),
  ]
  return `${lines.join('\n')}\n`
}
