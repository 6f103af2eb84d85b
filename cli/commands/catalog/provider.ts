import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { providerResource } from '../../../src/providers/provider-resource.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { idOf } from '../../command/record-names.ts'
import { recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Input } from '../../terminal/input.ts'
import { columns, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { providerStatus } from './provider-status.ts'

export const providerCommands = (terminal: Terminal, input?: Input) =>
  defineCommand({
    meta: { description: providerResource.about },
    subCommands: {
      ...resourceCommands(providerResource, terminal, { input }),
      status: providerStatus(terminal),
      test: () => test(terminal),
    },
  })

const trialSchema = z.looseObject({
  provider: z.string(),
  ok: z.boolean(),
  steps: z.array(z.looseObject({ step: z.string(), ok: z.boolean().nullable(), message: z.string() })),
})

const test = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Ask a provider for its models, a short answer and a short stream, and say what works' },
    args: {
      provider: { type: 'positional', required: true, description: 'Its name or id' },
      model: {
        type: 'string',
        description: "The provider's name of the model to ask; absent: one of the catalog, or the cheapest it lists",
      },
      ...recordFlags,
    },
    async run({ args }) {
      const api = connect(args, terminal)
      const path = `${recordPath(providerResource, await idOf('PROVIDER', args.provider, providerResource.path, api))}/test`
      const body = args.model === undefined ? {} : { model: args.model }
      const trial = await api.json({ method: 'POST', path, body }, trialSchema)
      const lines = trial.steps.map(({ step, ok, message }) => [wordOf(ok), step, printable(message)])
      await terminal.write(args.json ? `${JSON.stringify(trial)}\n` : columns(lines))
      if (!trial.ok) throw new Failure('upstream_provider_error', { message: `${trial.provider} does not work yet` })
    },
  })

const wordOf = (ok: boolean | null): string => (ok === null ? 'skipped' : ok ? 'works' : 'fails')
