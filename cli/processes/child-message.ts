/**
 * What a process that serves and the supervisor of `up` say to each other, over the channel between them and nowhere
 * else. The forms are read by hand, so that the supervisor does not load what makes schemas.
 */
import { asFailure, Failure, type FailureCode, failures } from '../../src/failure.ts'

export interface ControlPlaneReady {
  ready: 'control-plane'
  base_url: string
  /** Null where the state is on a server. */
  state_file: string | null
  /** Said again, with the rest, when it is another one. */
  runtime_token: string
  /** On first start only. */
  admin_token: string | null
  /** Until an owner has a password. */
  setup_url: string | null
}

/** Said before a control plane is ready: with this a gateway can start beside it. */
interface ControlPlaneListens extends Handover {
  ready: 'soon'
}

interface GatewayReady {
  ready: 'gateway'
  url: string
}

interface Failed {
  ready: false
  code: string
  message: string
}

export type ChildMessage = ControlPlaneListens | ControlPlaneReady | GatewayReady | Failed

/** What a gateway under `up`, which is started beside the control plane, needs of it; told again to each start. */
export interface Handover {
  api_token: string
  state_file: string | null
}

type Members<Message> = Readonly<Record<Exclude<keyof Message, 'ready'>, 'text' | 'text or null'>>

const controlPlaneReady: Members<ControlPlaneReady> = {
  base_url: 'text',
  state_file: 'text or null',
  runtime_token: 'text',
  admin_token: 'text or null',
  setup_url: 'text or null',
}
const gatewayReady: Members<GatewayReady> = { url: 'text' }
const failed: Members<Failed> = { code: 'text', message: 'text' }
const handover: Members<Handover> = { api_token: 'text', state_file: 'text or null' }

function holds<Message>(said: object, members: Members<Message>): boolean {
  return Object.entries(members).every(([name, form]) => {
    const value: unknown = Reflect.get(said, name)
    return typeof value === 'string' || (form === 'text or null' && value === null)
  })
}

export function isChildMessage(said: unknown): said is ChildMessage {
  if (typeof said !== 'object' || said === null || !('ready' in said)) return false
  if (said.ready === 'soon') return holds(said, handover)
  if (said.ready === 'control-plane') return holds(said, controlPlaneReady)
  if (said.ready === 'gateway') return holds(said, gatewayReady)
  return said.ready === false && holds(said, failed)
}

export const isHandover = (said: unknown): said is Handover =>
  typeof said === 'object' && said !== null && holds(said, handover)

/**
 * What the supervisor says of a child that is ready: what the child said when it became ready has reached whom it is
 * for.
 */
export const announcedMessage = 'announced'

export function failedMessage(thrown: unknown): ChildMessage {
  const { code, message } = asFailure(thrown)
  return { ready: false, code, message }
}

const isFailureCode = (code: string): code is FailureCode => Object.hasOwn(failures, code)

export const failureOf = ({ code, message }: Failed): Failure =>
  new Failure(isFailureCode(code) ? code : 'process_failed', { message })
