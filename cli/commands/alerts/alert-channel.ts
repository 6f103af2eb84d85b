/** `alert-channel list|get|create|update|delete|test`: where notices of alerts go. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { channelResource } from '../../../src/alerts/channel-resource.ts'
import { Failure } from '../../../src/failure.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const alertChannelCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: channelResource.about },
    subCommands: { ...resourceCommands(channelResource, terminal), test: async () => test(terminal) },
  })

const answerSchema = z.object({ delivered: z.boolean(), error: z.string().nullable() })

const test = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Send a notice to an alert channel now; exits with 1 where it does not arrive' },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(channelResource, args.id)}/test`
      const { delivered, error } = await connect(args, terminal).json({ method: 'POST', path, body: {} }, answerSchema)
      if (args.json) await terminal.write(`${JSON.stringify({ delivered, error })}\n`)
      if (!delivered) throw new Failure('dependency_unavailable', { message: `The notice did not arrive: ${error}` })
      if (!args.json) terminal.note('The notice arrived')
    },
  })
