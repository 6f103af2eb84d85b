/**
 * `connect CLIENT`: gives a client what it needs to talk to the gateway.
 *
 * 1. Read the flags, and with `--write` the client's files; show what would change and ask.
 * 2. Make a token, or take the given one.
 * 3. Check it with one request as the client sends it. Where that fails, the new token is revoked and nothing is
 *    written.
 * 4. Print the setup, or write it.
 */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { recipes } from '../../../src/clients/index.ts'
import type { Connection, Recipe } from '../../../src/clients/recipe.ts'
import { settingsSchema } from '../../../src/config.ts'
import { Failure } from '../../../src/failure.ts'
import { nearest } from '../../../src/lib/text/nearest.ts'
import type { Api } from '../../command/api.ts'
import { type ConnectionFlags, findConnection } from '../../command/profile.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type Checked, checkConnection } from './check.ts'
import { clientPlace, formerToken, planUndo, planWrite, type Step, undo, write } from './client-files.ts'
import {
  type ClientToken,
  givenToken,
  makeToken,
  readModels,
  readTokenBody,
  rolesBeyondNeed,
  type TokenFlags,
  tokenFlags,
} from './client-token.ts'
import { differenceText, setupText } from './show.ts'
import { connectSignIn } from './sign-in.ts'

const names = recipes.map(({ name }) => name).join(', ')
/** Stands for the secret until there is one: what is shown before the question has none. */
const notYet = 'gth_THE_NEW_TOKEN'
/** A gateway with a replica knows a new token a moment later. Milliseconds. */
const newTokenGrace = 10_000

interface Flags extends ConnectionFlags, TokenFlags {
  readonly client: string
  readonly 'gateway-url': string | undefined
  readonly 'sign-in': boolean | undefined
  readonly write: boolean | undefined
  readonly undo: boolean | undefined
  readonly yes: boolean | undefined
  readonly 'skip-check': boolean | undefined
  readonly json: boolean | undefined
}

export const connectCommand = (terminal: Terminal, input: Input = processInput) =>
  defineCommand({
    meta: { description: `Connect a client to the gateway: ${names}` },
    args: {
      client: { type: 'positional', required: true, description: `Which client: ${names}` },
      ...tokenFlags,
      'gateway-url': {
        type: 'string',
        description: "The gateway's address as the client sees it (default: the one that the control plane names)",
        valueHint: 'URL',
      },
      'sign-in': {
        type: 'boolean',
        description:
          'Make no token: let people sign in at the gateway (claude-code), and print what machines need for it',
      },
      write: { type: 'boolean', description: "Change the client's own files, after showing how and asking" },
      undo: { type: 'boolean', description: 'Take back what --write changed' },
      yes: { type: 'boolean', description: 'Do not ask' },
      'skip-check': { type: 'boolean', description: 'Do not try the connection' },
      ...recordFlags,
    },
    async run({ args }) {
      const recipe = recipes.find(({ name }) => name === args.client)
      if (recipe === undefined) {
        const near = nearest(args.client, names.split(', '))
        const hint = near === null ? `use one of ${names}` : `did you mean ${near}?`
        throw new Failure('usage', { message: `There is no such client: ${hint}` })
      }
      if (args.write && args.undo) {
        throw new Failure('usage', { message: '--write and --undo contradict each other: give one' })
      }
      const job = { recipe, flags: args, terminal, input }
      if (args['sign-in']) await signInWith(job)
      else if (args.undo) await takeBack(job)
      else await connectClient(job)
    },
  })

interface Job {
  recipe: Recipe
  flags: Flags
  terminal: Terminal
  input: Input
}

/** Flags about a token or files have no meaning where there is neither. */
async function signInWith({ recipe, flags, terminal }: Job): Promise<void> {
  const odd = (['write', 'undo', 'model', 'max-budget', 'expires', 'token-env', 'token-stdin'] as const).find(
    (name) => flags[name] !== undefined,
  )
  if (odd !== undefined) {
    throw new Failure('usage', { message: `--${odd} and --sign-in contradict each other: give one` })
  }
  const api = connect(flags, terminal)
  const gatewayUrl = await findGateway(flags['gateway-url'], api)
  await connectSignIn({ recipe, gatewayUrl, api, json: flags.json, terminal })
}

async function connectClient({ recipe, flags, terminal, input }: Job): Promise<void> {
  const body = readTokenBody(flags)
  const models = readModels(flags).filter((model) => !model.includes('*'))
  if (recipe.needsModel && models.length === 0) {
    throw new Failure('usage', { message: `${recipe.title} must be told its models: name them with --model` })
  }
  const place = clientPlace(recipe, terminal.environment)
  const api = connect(flags, terminal)
  const gatewayUrl = await findGateway(flags['gateway-url'], api)
  const connectionWith = (token: string): Connection => ({
    ...{ gatewayUrl, models, token },
    tokenFile: flags.write ? place.tokenFile : null,
  })
  const plan = (token: string) => planWrite(recipe.setup(connectionWith(token)).files, place, terminal.environment)
  if (flags.write) {
    const steps = plan(notYet)
    if (steps.length === 0) {
      throw new Failure('usage', { message: `${recipe.title} has no file that could be written: leave --write out` })
    }
    await confirm(steps, { flags, terminal, input })
  }
  const token = (await givenToken(flags, terminal, input)) ?? (await makeToken(api, { recipe, body, ...terminal }))
  const connection = connectionWith(token.secret)
  const done = await orRevoke({ token, api, terminal }, async () => {
    const checked = flags['skip-check'] ? null : await check(recipe, connection, token)
    const steps = flags.write ? plan(token.secret) : []
    const former = flags.write ? formerToken(place) : null
    if (flags.write) write(steps, { place, token: token.secret, tokenId: token.made?.id ?? null })
    return { checked, steps, former }
  })
  await showDone({ recipe, connection, token, ...done, flags, terminal })
  if (token.made === null) await noteRoles(token.secret, { recipe, flags, terminal })
}

/**
 * Asks only a control plane that has named the gateway: the secret goes to no other, and nobody waits for one that is
 * away.
 */
async function noteRoles(secret: string, { recipe, flags, terminal }: Omit<Job, 'input'>): Promise<void> {
  if (flags['gateway-url'] !== undefined) return
  const beyond = await rolesBeyondNeed(secret, findConnection(flags, terminal))
  if (beyond.length === 0) return
  terminal.note(
    `The given token has the role ${beyond.join(' and ')}, which ${recipe.title} does not need: repeat the command without --token-env and --token-stdin for a token that may call models alone`,
  )
}

const check = (recipe: Recipe, connection: Connection, { made }: ClientToken): Promise<Checked> =>
  checkConnection({
    connection,
    language: recipe.speaks,
    grace: made === null ? 0 : newTokenGrace,
    fetch,
    sleep: Bun.sleep,
  })

/** A new token that no client gets is of no use to anybody. */
async function orRevoke<Result>(
  { token: { made }, api, terminal }: { token: ClientToken; api: Api; terminal: Terminal },
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (thrown) {
    if (made !== null) {
      await api.json({ method: 'DELETE', path: `/v1/tokens/${made.id}` }, z.looseObject({})).then(
        () => terminal.note(`The new token was revoked again: ${made.id}`),
        () => terminal.note(`The new token still stands: ${terminal.name} token delete ${made.id} --yes`),
      )
    }
    throw thrown
  }
}

const describedSchema = z.looseObject({
  paths: z.looseObject({
    '/v1/chat/completions': z.looseObject({
      post: z.looseObject({ servers: z.array(z.looseObject({ url: z.string() })) }),
    }),
  }),
})

/** The API's own description says where the gateway is. */
async function findGateway(written: string | undefined, api: Api): Promise<string> {
  if (written !== undefined) {
    const problem = settingsSchema.shape.gateway_url.form.problem(written)
    if (problem === null) return new URL(written).origin
    throw new Failure('usage', { message: `--gateway-url: ${problem}` })
  }
  const described = await api.json({ path: '/v1/openapi.json' }, describedSchema)
  const [server] = described.paths['/v1/chat/completions'].post.servers
  if (server !== undefined) return new URL(server.url).origin
  throw new Failure('usage', { message: 'The control plane names no gateway: name one with --gateway-url' })
}

async function confirm(steps: readonly Step[], { flags, terminal, input }: Omit<Job, 'recipe'>): Promise<void> {
  for (const step of steps) terminal.note(`${differenceText(step)}\n`)
  if (flags.yes) return
  if (!input.interactive) {
    throw new Failure('usage', { message: 'Nobody is there to be asked: repeat the command with --yes' })
  }
  terminal.note('Change these files? [y/N]')
  if (/^y(es)?$/i.test((await input.line()).trim())) return
  throw new Failure('usage', { message: 'Nothing was changed' })
}

interface Done {
  recipe: Recipe
  connection: Connection
  token: ClientToken
  checked: Checked | null
  steps: readonly Step[]
  /** The token that was made for this client before. */
  former: string | null
  flags: Flags
  terminal: Terminal
}

async function showDone({ recipe, connection, token, checked, steps, former, flags, terminal }: Done): Promise<void> {
  const setup = recipe.setup(connection)
  const { name, title } = recipe
  if (flags.json) {
    const files = flags.write
      ? steps.map(({ path }) => ({ path }))
      : setup.files.map(({ path, text }) => ({ path: `~/${path}`, text }))
    const { environment, snippets, steps: todo } = setup
    const said = { client: name, gateway_url: connection.gatewayUrl, models: connection.models, token: token.made }
    const secret = flags.write || token.made === null ? {} : { token_value: token.secret }
    const shown = {
      ...said,
      ...secret,
      written: flags.write === true,
      environment,
      files,
      snippets,
      steps: todo,
      checked,
    }
    return await terminal.write(`${JSON.stringify(shown)}\n`)
  }
  if (token.made !== null) {
    const { name: called, id, expires_at } = token.made
    terminal.note(`Made the token "${called}" (${id}), which ends ${expires_at ?? 'never'}`)
  }
  if (checked !== null) terminal.note(checkText(checked))
  if (!flags.write) return await terminal.write(setupText(recipe, setup))
  for (const { path } of steps) await terminal.write(`${path}\n`)
  if (former !== null)
    terminal.note(`The token made before still stands: ${terminal.name} token delete ${former} --yes`)
  for (const step of setup.steps) terminal.note(step)
  terminal.note(`${title} uses ${connection.gatewayUrl}; to take this back: ${terminal.name} connect ${name} --undo`)
}

const checkText = ({ model, listed, milliseconds }: Checked): string =>
  model === null
    ? `The gateway accepts the token and lists ${listed ?? 'its'} models (${milliseconds} ms). Name one with --model to try it`
    : `${model} answered in ${milliseconds} ms`

async function takeBack({ recipe, flags, terminal, input }: Job): Promise<void> {
  const place = clientPlace(recipe, terminal.environment)
  const { steps, tokenId, staysFile } = planUndo(recipe, place)
  await confirm(steps, { flags, terminal, input })
  undo(steps, place)
  if (flags.json) {
    const files = steps.map(({ path }) => ({ path }))
    return await terminal.write(`${JSON.stringify({ client: recipe.name, undone: true, files, token_id: tokenId })}\n`)
  }
  for (const { path } of steps) await terminal.write(`${path}\n`)
  if (staysFile !== null)
    terminal.note(`A part that was changed since stays and reads ${staysFile}, so that file stays too`)
  if (tokenId !== null) terminal.note(`The token still stands: ${terminal.name} token delete ${tokenId} --yes`)
}
