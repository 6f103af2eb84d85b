#!/usr/bin/env bun
/** The executable's entry: the table of commands, and what holds for all of them. */
import { basename } from 'node:path'
import { Failure } from '../src/failure.ts'
import { dispatch, type Group } from './command.ts'
import { report } from './report.ts'
import { processTerminal, type Terminal } from './terminal.ts'

export const commands = (terminal: Terminal): Group => ({
  about: 'A governing gateway for model traffic',
  commands: {
    up: async () => (await import('./up.ts')).up(terminal),
    'control-plane': async () => (await import('./serve.ts')).controlPlaneCommand(terminal),
    gateway: async () => (await import('./gateway.ts')).gatewayCommands(terminal),
    token: async () => (await import('./token.ts')).token(terminal),
    provider: async () => (await import('./provider.ts')).providerCommands(terminal),
    model: async () => (await import('./model.ts')).modelCommands(terminal),
    'mcp-server': async () => (await import('./mcp-server.ts')).mcpServerCommands(terminal),
    policy: async () => (await import('./policy.ts')).policyCommands(terminal),
    escalation: async () => (await import('./escalation.ts')).escalationCommands(terminal),
    apply: async () => (await import('./apply.ts')).applyCommand(terminal),
    team: async () => (await import('./team.ts')).team(terminal),
    user: async () => (await import('./user.ts')).user(terminal),
    'oauth-client': async () => (await import('./oauth-client.ts')).oauthClientCommands(terminal),
    budget: async () => (await import('./budget.ts')).budget(terminal),
    'consumer-group': async () => (await import('./consumer-group.ts')).consumerGroup(terminal),
    'access-policy': async () => (await import('./access-policy.ts')).accessPolicy(terminal),
    auth: async () => (await import('./auth.ts')).auth(terminal),
    usage: async () => (await import('./usage.ts')).usage(terminal),
    events: async () => (await import('./events.ts')).events(terminal),
    doctor: async () => (await import('./doctor.ts')).doctor(terminal),
    config: async () => (await import('./explain.ts')).config(terminal),
    install: async () => (await import('./install.ts')).install(terminal),
    completion: async () => (await import('./completion.ts')).completion(terminal, () => commands(terminal)),
    openapi: async () => (await import('./openapi.ts')).openapi(terminal),
    version: async () => (await import('./show-version.ts')).showVersion(terminal),
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
  try {
    refuseTokenFlag(rawArguments)
    const asked = rawArguments.length === 1 && rawArguments[0] === '--version' ? ['version'] : rawArguments
    await dispatch(commands(terminal), asked, terminal)
    return 0
  } catch (thrown) {
    return report(thrown, terminal)
  }
}

if (import.meta.main) {
  const compiled = Bun.main.startsWith('/$bunfs/')
  const name = compiled ? basename(process.argv0) : 'gatehouse'
  const terminal = processTerminal(name)
  await terminal.end(await main(process.argv.slice(2), terminal))
}
