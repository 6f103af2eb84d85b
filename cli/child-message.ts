/** What a process that serves and the supervisor of `up` say to each other, over the channel between them and nowhere else. */
import { z } from 'zod'
import { asFailure, Failure, type FailureCode, failures } from '../src/failure.ts'

const controlPlaneReady = z.object({
  ready: z.literal('control-plane'),
  base_url: z.string(),
  /** Null where the state is on a server. */
  state_file: z.string().nullable(),
  /** Said again, with the rest, when it is another one. */
  runtime_token: z.string(),
  /** On first start only, as the two that follow from it. */
  admin_token: z.string().nullable(),
  setup_url: z.string().nullable(),
})

const gatewayReady = z.object({ ready: z.literal('gateway'), url: z.string() })

const failed = z.object({ ready: z.literal(false), code: z.string(), message: z.string() })

export const childMessageSchema = z.union([controlPlaneReady, gatewayReady, failed])

/** What a gateway under `up`, which is started beside the control plane, needs of it; told again to each start. */
export const handoverSchema = z.object({ api_token: z.string(), state_file: z.string().nullable() })
export type Handover = z.infer<typeof handoverSchema>

/** What the supervisor says of a child that is ready: what the child said when it became ready has reached whom it is for. */
export const announcedMessage = 'announced'

export type ControlPlaneReady = z.infer<typeof controlPlaneReady>
export type ChildMessage = z.infer<typeof childMessageSchema>

export function failedMessage(thrown: unknown): ChildMessage {
  const { code, message } = asFailure(thrown)
  return { ready: false, code, message }
}

const isFailureCode = (code: string): code is FailureCode => Object.hasOwn(failures, code)

export const failureOf = ({ code, message }: z.infer<typeof failed>): Failure =>
  new Failure(isFailureCode(code) ? code : 'process_failed', { message })
