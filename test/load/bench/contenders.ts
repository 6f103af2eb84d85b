/**
 * What the bench compares, each in processes of its own: bare proxies, and Gatehouse with nothing and everything on.
 */
import { createToken } from '../../support/client.ts'
import { type Gatehouse, startGatehouse } from '../../support/harness.ts'
import { type Beside, startBeside } from '../rig/beside.ts'
import { answers, chatTarget, makePolicy, priceModel, termPolicy, turnEverythingOn } from '../rig/everything-on.ts'
import { startNginx } from '../rig/nginx.ts'
import type { Target } from '../rig/target.ts'
import { names } from './measured.ts'

export interface Contender {
  name: string
  target: Target
  /** The processes that its requests pass through. */
  pids: readonly number[]
  /** Gatehouse has these besides: a control plane that records, and the directory where the records arrive. */
  record?: { pid: number; dataDirectory: string }
}

export interface Field extends AsyncDisposable {
  upstream: Beside
  /** All that are installed, the bare proxy first. */
  all: readonly Contender[]
  bare: Contender
  plain: Contender
  everything: Contender
  /** `plain` by a token whose answers are searched for 400 terms. */
  inspected: Contender
  /** The installations of `plain` and of `everything`. */
  plainGatehouse: Gatehouse
  gatehouse: Gatehouse
  skipped: readonly string[]
}

const path = '/v1/chat/completions'

const governedBy = (name: string, gatehouse: Gatehouse, target: Target): Contender => ({
  name,
  target: { ...target, name },
  pids: [gatehouse.gatewayPid()],
  record: { pid: gatehouse.controlPlanePid(), dataDirectory: gatehouse.dataDirectory },
})

const bareContender = (bare: Beside): Contender => ({
  name: names.bare,
  target: { name: names.bare, url: `${bare.url}/bare${path}`, token: 'none' },
  pids: [bare.pid],
})

/** Starts all of them. */
export async function startField(): Promise<Field> {
  await using stack = new AsyncDisposableStack()
  const upstream = stack.use(await startBeside('mock-upstream.ts'))
  const bare = bareContender(stack.use(await startBeside('pass-through.ts', upstream.url)))
  const nginx = stack.use(await startNginx(upstream.url))
  const one = stack.use(await startGatehouse({ upstream: { baseUrl: `${upstream.url}/plain/v1` } }))
  await priceModel(one)
  const plain = governedBy(names.plain, one, chatTarget(one.gatewayUrl, (await createToken(one)).token_value))
  const inspected = governedBy(names.inspected, one, await answersInspected(one))
  for (const { target } of [plain, inspected]) await answers(target)
  const gatehouse = stack.use(await startGatehouse({ upstream: { baseUrl: `${upstream.url}/everything/v1` } }))
  const everything = governedBy(names.everything, gatehouse, await turnEverythingOn(gatehouse))
  const proxies: Contender[] = nginx === null ? [] : [nginxContender(nginx)]
  const started = stack.move()
  return {
    ...{ upstream, bare, plain, everything, inspected, gatehouse, plainGatehouse: one },
    all: [bare, ...proxies, plain, everything],
    skipped: nginx === null ? ['nginx: it is not installed'] : [],
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

const nginxContender = ({ url, pids }: { url: string; pids: readonly number[] }): Contender => ({
  name: names.nginx,
  target: { name: names.nginx, url: `${url}/nginx${path}`, token: 'none' },
  pids,
})

/** A target whose token alone is bound to a policy of 400 terms on the answer. */
async function answersInspected(gatehouse: Gatehouse): Promise<Target> {
  const policy = termPolicy(400)
  const targets = { ...policy.targets, tokens: [] }
  const id = await makePolicy(gatehouse, { ...policy, stages: ['pre_response'], targets })
  return chatTarget(gatehouse.gatewayUrl, (await createToken(gatehouse, { policy_ids: [id] })).token_value)
}
