/**
 * `connect CLIENT --sign-in`: lets people sign in at the gateway with a client that can do so by itself. Registers the
 * client where it is not registered, checks that the gateway offers sign-in at its own address, and prints what an
 * administrator puts on each machine. No token is made, and no file is written: it belongs to the machine.
 */
import { z } from 'zod'
import type { Recipe, SignInRecipe } from '../../../src/clients/recipe.ts'
import { Failure } from '../../../src/failure.ts'
import { deviceGrant } from '../../../src/oauth/clients/client-resource.ts'
import type { Api } from '../../command/api.ts'
import { ApiRefusal } from '../../command/report.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const clientsPath = '/v1/oauth/clients'
const answerMilliseconds = 10_000

interface SignIn {
  recipe: Recipe
  gatewayUrl: string
  api: Api
  json: boolean | undefined
  terminal: Terminal
}

export async function connectSignIn({ recipe, gatewayUrl, api, json, terminal }: SignIn): Promise<void> {
  const { signIn, title } = recipe
  if (signIn === undefined) {
    throw new Failure('usage', { message: `${title} cannot sign people in at the gateway: leave --sign-in out` })
  }
  const registered = await registerMissing(api, signIn, title)
  await checkMetadata(gatewayUrl)
  const { files, steps } = signIn.setup(gatewayUrl)
  if (json) {
    const said = { client: recipe.name, gateway_url: gatewayUrl, client_id: signIn.clientId, registered, files, steps }
    return await terminal.write(`${JSON.stringify(said)}\n`)
  }
  if (registered) terminal.note(`Registered the application ${signIn.clientId}`)
  const [first] = files
  const places = files.map(({ platform, path }) => `# ${platform}: ${path}\n`).join('')
  await terminal.write(`# ${title}: in the managed settings\n${places}${first?.text ?? ''}`)
  for (const step of steps) terminal.note(step)
}

const clientSchema = z.looseObject({ status: z.string(), grant_types: z.array(z.string()) })

/** Whether the client was registered now. Throws `usage` where it is registered and cannot sign anybody in. */
async function registerMissing(api: Api, { clientId }: SignInRecipe, title: string): Promise<boolean> {
  try {
    const known = await api.json({ path: `${clientsPath}/${clientId}` }, clientSchema)
    if (known.status === 'active' && known.grant_types.includes(deviceGrant)) return false
    const message =
      known.status === 'active'
        ? `The application ${clientId} is not registered for device codes: gatehouse oauth-client update ${clientId} --grant-type ${deviceGrant} --grant-type refresh_token`
        : `The application ${clientId} is deactivated: gatehouse oauth-client activate ${clientId}`
    throw new Failure('usage', { message })
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal && thrown.status === 404)) throw thrown
  }
  const grant_types = [deviceGrant, 'refresh_token']
  const body = { client_id: clientId, client_name: title, scope: 'gateway:invoke', grant_types }
  await api.json({ method: 'POST', path: clientsPath, body }, z.looseObject({}))
  return true
}

const metadataSchema = z.looseObject({ device_authorization_endpoint: z.string(), token_endpoint: z.string() })

/** The client takes endpoints of the gateway's own origin only. */
async function checkMetadata(gatewayUrl: string): Promise<void> {
  const metadata = await readMetadata(`${gatewayUrl}/.well-known/oauth-authorization-server`)
  for (const endpoint of [metadata.device_authorization_endpoint, metadata.token_endpoint]) {
    const { origin } = new URL(endpoint)
    if (origin === gatewayUrl) continue
    const message = `The gateway calls itself ${origin}: set SERVICE_GATEWAY_URL to the address that people use, or name that one with --gateway-url`
    throw new Failure('usage', { message })
  }
}

async function readMetadata(address: string): Promise<z.infer<typeof metadataSchema>> {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(answerMilliseconds) })
    return metadataSchema.parse(await answer.json())
  } catch (thrown) {
    const message = `No gateway offers sign-in at ${address}: name it with --gateway-url, as people reach it`
    throw new Failure('usage', { message, cause: thrown })
  }
}
