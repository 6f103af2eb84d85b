/** The commands about workload identities: their records, revocations of callers, and reading their keys now. */
import { defineCommand } from 'citty'
import { Failure } from '../../../src/failure.ts'
import { workloadIdentityResource } from '../../../src/workloads/workload-identity-resource.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const workloadIdentityCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: workloadIdentityResource.about },
    subCommands: {
      ...resourceCommands(workloadIdentityResource, terminal),
      revoke: () => revocation(terminal, 'Refuse the JWTs of a subject, or one JWT, from now on', 'revocations'),
      allow: () => revocation(terminal, 'Take back the revocation of a subject or a JWT', 'revocations/remove'),
      'read-keys': () => readKeys(terminal),
    },
  })

const revocation = (terminal: Terminal, description: string, path: string) =>
  defineCommand({
    meta: { description },
    args: {
      ...idArgument,
      subject: { type: 'string', description: 'The `sub` of its JWTs', valueHint: 'TEXT' },
      'jwt-id': { type: 'string', description: 'The `jti` of the JWT', valueHint: 'TEXT' },
      ...recordFlags,
    },
    async run({ args }) {
      const { subject, 'jwt-id': jwtId } = args
      if ((subject === undefined) === (jwtId === undefined)) {
        throw new Failure('usage', { message: 'Use either --subject or --jwt-id' })
      }
      const body = subject === undefined ? { jwt_id: jwtId } : { subject }
      const to = `${recordPath(workloadIdentityResource, args.id)}/${path}`
      await sendRecord({ method: 'POST', path: to, body }, args, terminal)
    },
  })

const readKeys = (terminal: Terminal) =>
  defineCommand({
    meta: { description: "Read the issuer's keys now; they are read every five minutes anyway" },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(workloadIdentityResource, args.id)}/read-keys`
      await sendRecord({ method: 'POST', path }, args, terminal)
    },
  })
