#!/usr/bin/env bun
/** The executable's entry: the table of commands, and what holds for all of them. */
import { basename } from 'node:path'
import { defineCommand } from 'citty'
import { Failure } from '../src/failure.ts'
import { version } from '../src/version.ts'
import { type Command, runCommandLine } from './command/command.ts'
import { report } from './command/report.ts'
import { processTerminal, type Terminal } from './terminal/terminal.ts'

/** Each command is loaded when it is called: a gateway process never loads what a control plane needs. */
export const gatehouse = (terminal: Terminal): Command =>
  defineCommand({
    meta: { name: 'gatehouse', version, description: 'A governing gateway for model traffic' },
    subCommands: {
      up: async () => (await import('./processes/up.ts')).up(terminal),
      demo: async () => (await import('./commands/demo/demo.ts')).demo(terminal),
      'control-plane': async () => (await import('./processes/serve.ts')).controlPlaneCommand(terminal),
      gateway: async () => (await import('./commands/catalog/gateway.ts')).gatewayCommands(terminal),
      token: async () => (await import('./commands/tokens/token.ts')).token(terminal),
      connect: async () => (await import('./commands/connect/connect.ts')).connectCommand(terminal),
      provider: async () => (await import('./commands/catalog/provider.ts')).providerCommands(terminal),
      model: async () => (await import('./commands/catalog/model.ts')).modelCommands(terminal),
      'workload-identity': async () =>
        (await import('./commands/tokens/workload-identity.ts')).workloadIdentityCommands(terminal),
      cache: async () => (await import('./commands/catalog/cache.ts')).cacheCommands(terminal),
      backup: async () => (await import('./commands/backup.ts')).backup(terminal),
      restore: async () => (await import('./commands/backup.ts')).restore(terminal),
      'master-key': async () => (await import('./commands/master-key.ts')).masterKey(terminal),
      'mcp-server': async () => (await import('./commands/catalog/mcp-server.ts')).mcpServerCommands(terminal),
      policy: async () => (await import('./commands/policies/policy.ts')).policyCommands(terminal),
      escalation: async () => (await import('./commands/events/escalation.ts')).escalationCommands(terminal),
      alert: async () => (await import('./commands/alerts/alert.ts')).alertCommands(terminal),
      'alert-channel': async () => (await import('./commands/alerts/alert-channel.ts')).alertChannelCommands(terminal),
      apply: async () => (await import('./commands/apply/apply.ts')).applyCommand(terminal),
      export: async () => (await import('./commands/export/export.ts')).exportCommand(terminal),
      import: async () => (await import('./commands/import/import.ts')).importCommand(terminal),
      'access-review': async () => (await import('./commands/people/access-review.ts')).accessReview(terminal),
      'identity-provider': async () =>
        (await import('./commands/people/identity-provider.ts')).identityProviderCommands(terminal),
      'scim-token': async () => (await import('./commands/people/scim-token.ts')).scimTokenCommands(terminal),
      team: async () => (await import('./commands/people/team.ts')).team(terminal),
      'managed-settings': async () =>
        (await import('./commands/people/managed-settings.ts')).managedSettingsCommands(terminal),
      user: async () => (await import('./commands/people/user.ts')).user(terminal),
      'oauth-client': async () => (await import('./commands/people/oauth-client.ts')).oauthClientCommands(terminal),
      budget: async () => (await import('./commands/limits/budget.ts')).budget(terminal),
      'consumer-group': async () => (await import('./commands/limits/consumer-group.ts')).consumerGroup(terminal),
      'access-policy': async () => (await import('./commands/limits/access-policy.ts')).accessPolicy(terminal),
      dimension: async () => (await import('./commands/limits/dimension.ts')).dimension(terminal),
      connection: async () => (await import('./commands/people/connection.ts')).connectionCommands(terminal),
      auth: async () => (await import('./commands/auth.ts')).auth(terminal),
      usage: async () => (await import('./commands/usage/usage.ts')).usage(terminal),
      events: async () => (await import('./commands/events/events.ts')).events(terminal),
      sink: async () => (await import('./commands/events/sink.ts')).sinkCommands(terminal),
      top: async () => (await import('./commands/watch/top.ts')).top(terminal),
      logs: async () => (await import('./commands/watch/logs.ts')).logs(terminal),
      doctor: async () => (await import('./commands/doctor.ts')).doctor(terminal),
      config: async () => (await import('./commands/config.ts')).config(terminal),
      install: async () => (await import('./install/install.ts')).install(terminal),
      completion: async () =>
        (await import('./command/completion/completion.ts')).completion(terminal, () => gatehouse(terminal)),
      openapi: async () => (await import('./commands/openapi.ts')).openapi(terminal),
      help: async () => (await import('./commands/help.ts')).help(terminal, () => gatehouse(terminal)),
      version: async () => (await import('./commands/version.ts')).showVersion(terminal),
    },
  })

/** Every process of a host can read a command line, so a token on it is refused before anything else is looked at. */
function refuseTokenFlag(rawArguments: readonly string[]): void {
  if (rawArguments.some((argument) => /^--?api-?token($|=)/i.test(argument))) {
    throw new Failure('usage', {
      message: '--api-token is not accepted, because other users could read it: set SERVICE_API_TOKEN instead',
    })
  }
}

/** Runs one command line; resolves to the exit code. */
export async function main(rawArguments: readonly string[], terminal: Terminal): Promise<number> {
  let path = terminal.name
  const onFound = (found: string) => {
    path = found
  }
  try {
    refuseTokenFlag(rawArguments)
    const asked = rawArguments.length === 1 && rawArguments[0] === '--version' ? ['version'] : rawArguments
    await runCommandLine(gatehouse(terminal), asked, terminal, onFound)
    return 0
  } catch (thrown) {
    return report(thrown, terminal, path)
  }
}

if (import.meta.main) {
  const compiled = Bun.main.startsWith('/$bunfs/')
  const name = compiled ? basename(process.argv0) : 'gatehouse'
  const terminal = processTerminal(name)
  await terminal.end(await main(process.argv.slice(2), terminal))
}
