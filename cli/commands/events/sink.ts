/** The commands about sinks: their records, a test event, and the proof of an archive. */
import { existsSync } from 'node:fs'
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import type { Archive } from '../../../src/sinks/archive/archive.ts'
import { sinkResource } from '../../../src/sinks/sink-resource.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import { linesOf } from '../../command/stream.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { conclude, printReport } from './verify.ts'

export const sinkCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: sinkResource.about },
    subCommands: {
      ...resourceCommands(sinkResource, terminal),
      test: () => test(terminal),
      verify: () => verify(terminal),
    },
  })

const younger = 'a later part of the archive brings the checkpoint that covers them'

const testReply = z.object({ ok: z.boolean(), event_id: z.string(), error: z.string().nullable() })

const test = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Send a test event to a sink; exit code 1 where it was not taken' },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(sinkResource, args.id)}/test`
      const reply = await connect(args, terminal).json({ method: 'POST', path }, testReply)
      if (args.json) await terminal.write(`${JSON.stringify(reply)}\n`)
      if (!reply.ok) throw new Failure('dependency_unavailable', { message: printable(reply.error ?? '') })
      if (!args.json) await terminal.write(`The sink took the test event ${reply.event_id}\n`)
    },
  })

const verify = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Prove an archive of records: by a sink of the kind s3, or from files that were copied' },
    args: {
      id: { type: 'positional', required: false, description: 'The id of a sink of the kind s3' },
      from: {
        type: 'string',
        description: 'A folder with the objects of a bucket, or a file of lines; no control plane is asked',
        valueHint: 'PATH',
      },
      key: {
        type: 'string',
        description: 'Trust this key only, by its id (repeatable)',
        repeatable: true,
        valueHint: 'ID',
      },
      ...recordFlags,
    },
    async run({ args }) {
      const keys = args.key?.split('\n') ?? []
      const wrong = keys.find((key) => !/^[0-9a-f]{64}$/.test(key))
      if (wrong !== undefined) throw new Failure('usage', { message: '--key takes an id of 64 hexadecimal digits' })
      const { id, from } = args
      if ((id === undefined) === (from === undefined)) {
        throw new Failure('usage', { message: 'Name either a sink by its id or files by --from' })
      }
      const lines =
        from === undefined
          ? linesOf(
              await connect(args, terminal).response({
                ...{ method: 'POST', path: `${recordPath(sinkResource, id ?? '')}/verify`, body: { keys } },
              }),
            )
          : linesOfFiles(from, keys)
      const { summary, begun } = await printReport(lines, terminal, args.json === true)
      if (args.json !== true) {
        await conclude(summary, keys.length > 0, terminal, younger)
        for (const note of limitsOf(summary, begun)) terminal.note(note)
      }
      if (summary.records === 0) throw new Failure('not_found', { message: 'No records of an archive are there' })
      if (summary.findings > 0) {
        throw new Failure('events_tampered', {
          message: `The archive is not what was recorded: ${summary.findings} findings`,
        })
      }
    },
  })

const chainsNamed = 5

/** What the archive alone cannot prove, where there is something of it. */
function limitsOf({ records, events }: { records: number; events: number }, begun: readonly string[]): string[] {
  const without = records - events
  const named = begun.slice(0, chainsNamed).join(', ')
  const more = begun.length > chainsNamed ? `, and ${begun.length - chainsNamed} more` : ''
  return [
    ...(without > 0
      ? [`${without} records have only a digest here: the sink's filter left them out, or somebody took them out`]
      : []),
    ...(begun.length > 0
      ? [`Chains begin late (${named}${more}): the sink began there, or somebody took older parts away`]
      : []),
  ]
}

async function* linesOfFiles(path: string, pinned: readonly string[]): AsyncGenerator<string, void, undefined> {
  if (!existsSync(path)) throw new Failure('usage', { message: `${path} is not there` })
  const [{ fileArchive }, { verifyArchive }] = await Promise.all([
    import('../../../src/sinks/archive/file-archive.ts'),
    import('../../../src/sinks/archive/verify-archive.ts'),
  ])
  const archive: Archive = fileArchive(path)
  for await (const line of verifyArchive({ archive, pinned, witnesses: [], keys: null, reaches: null })) {
    yield JSON.stringify(line)
  }
}
