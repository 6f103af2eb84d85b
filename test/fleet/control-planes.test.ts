/** Two control planes on one primary, with gateways at each: what holds through signals, kills and hangs. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { revokedToken } from '../answers.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../client.ts'
import { acceptedToken, type FleetUnderTest, startFleet } from './fleet.ts'
import type { FleetGateway } from './gateway.ts'

setDefaultTimeout(60_000)

let fleet: FleetUnderTest

beforeAll(async () => {
  fleet = await startFleet({ gateways: 4 })
}, 240_000)
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]()
})

const say = async (gateway: FleetGateway, token: string): Promise<number> => {
  const answer = await chat(gateway, { token, model: 'simulator/echo' })
  await answer.arrayBuffer()
  return answer.status
}

test('a revocation by either control plane is in force at every gateway when it has answered', async () => {
  const times: number[] = []
  for (let round = 0; round < 20; round++) {
    const token = await acceptedToken(fleet, say)
    const plane = fleet.planes[round % 2 === 0 ? 0 : 1]
    const began = performance.now()
    const { propagation } = expectAnswer(await revoke(plane, token.id), 200, revokedToken)
    times.push(performance.now() - began)
    expect(propagation).toMatchObject({ connected: 4, acknowledged: 4, unreachable: [] })
    expect(await Promise.all(fleet.gateways.map((gateway) => say(gateway, token.token_value)))).toEqual([
      401, 401, 401, 401,
    ])
  }
  times.sort((one, other) => one - other)
  console.error('revocation ms', times.map(Math.round).join(' '))
})
