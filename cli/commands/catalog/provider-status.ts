/** `provider status`: how each target is, as the gateways measured it. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { targetHealthSchema } from '../../../src/fleet/protocol/wire.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { columns, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const answerSchema = z.object({ targets: z.array(targetHealthSchema.extend({ worker: z.string() })) })
type Target = z.infer<typeof answerSchema>['targets'][number]

export const providerStatus = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description:
        'Show how each target is: errors, latency, calls in flight, circuit and keys, as each gateway process measured it in the last seconds',
    },
    args: recordFlags,
    async run({ args }) {
      const { targets } = await connect(args, terminal).json({ path: '/v1/catalog/targets' }, answerSchema)
      if (args.json) return await terminal.write(`${JSON.stringify({ targets })}\n`)
      if (targets.length === 0) return terminal.note('No gateway has called a provider yet')
      await terminal.write(`${columns([titles, ...targets.map(rowOf)])}\n`)
    },
  })

const titles = ['TARGET', 'WORKER', 'CALLS', 'ERRORS', 'P50', 'P95', 'IN FLIGHT', 'STATE', 'LAST ERROR']
const rowOf = (target: Target): string[] => [
  printable(`${target.provider}/${target.model}`),
  target.worker,
  String(target.calls),
  `${Math.round(100 * target.error_ratio)} %`,
  milliseconds(target.first_byte_p50_ms),
  milliseconds(target.first_byte_p95_ms),
  String(target.in_flight),
  stateOf(target),
  errorOf(target),
]

const milliseconds = (value: number | null): string => (value === null ? '-' : `${Math.round(value)} ms`)

function stateOf({ circuit_open: isOpen, keys, keys_resting: resting }: Target): string {
  if (isOpen) return 'circuit open'
  return resting === 0 ? 'in use' : `${resting} of ${keys} keys rest`
}

function errorOf({ last_error: error }: Target): string {
  return error === null ? '-' : printable(`${error.at} ${error.reason} ${error.status ?? ''}`.trimEnd())
}
