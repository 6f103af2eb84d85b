/** A small fleet: two control planes on one primary, and gateways spread over them. */

import { createdToken } from '../support/answers.ts'
import { api, createToken, expectAnswer, installation } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type ControlPlane, type Primary, startControlPlane, startPrimary } from './control-plane.ts'
import { type FleetGateway, type FleetGatewayOptions, startFleetGateway } from './gateway.ts'

export interface FleetUnderTest extends AsyncDisposable {
  primary: Primary
  planes: [ControlPlane, ControlPlane]
  gateways: FleetGateway[]
  runtimeToken: string
  gatewayId: string
  /** One more gateway at one of the control planes; `options` name another way there, or a place for its data. */
  add(plane: ControlPlane, options?: Partial<FleetGatewayOptions>): Promise<FleetGateway>
  /** Ends one in order, for good. */
  remove(gateway: FleetGateway): Promise<void>
}

export interface FleetOptions {
  gateways: number
  namespaces?: boolean
  environment?: Readonly<Record<string, string>>
}

/** Both control planes start at once on empty databases; gateways are dealt to them in turn. */
export async function startFleet({
  gateways,
  namespaces = false,
  environment = {},
}: FleetOptions): Promise<FleetUnderTest> {
  const primary = await startPrimary({ namespaces })
  const planes = await Promise.all([startControlPlane(primary, environment), startControlPlane(primary, environment)])
  const adminToken = planes.find((plane) => plane.adminToken !== '')?.adminToken ?? ''
  for (const plane of planes) plane.adminToken = adminToken
  const [first] = planes
  const { gatewayId, teamId } = await installation(first)
  const { token_value: runtimeToken } = expectAnswer(
    await api(first, '/v1/tokens', {
      body: {
        name: 'fleet',
        purpose: 'gateway_runtime',
        principal_type: 'gateway_runtime',
        bindings: { gateway_id: gatewayId, team_id: teamId },
      },
    }),
    201,
    createdToken,
  )
  const started: FleetGateway[] = []
  const fleet: FleetUnderTest = {
    ...{ primary, planes, gateways: started, runtimeToken, gatewayId },
    async add(plane, options = {}) {
      const gateway = await startFleetGateway({ controlPlane: plane.baseUrl, runtimeToken, ...options })
      started.push(gateway)
      return gateway
    },
    async remove(gateway) {
      started.splice(started.indexOf(gateway), 1)
      await gateway.stop()
      await gateway[Symbol.asyncDispose]()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((gateway) => gateway[Symbol.asyncDispose]()))
      await Promise.all(planes.map((plane) => plane[Symbol.asyncDispose]()))
      await primary[Symbol.asyncDispose]()
    },
  }
  for (let index = 0; index < gateways; index++) await fleet.add(planes[index % 2 === 0 ? 0 : 1])
  return fleet
}

/** A token for the simulator that every gateway of the fleet accepts already. */
export async function acceptedToken(
  { planes, gateways }: FleetUnderTest,
  say: (gateway: FleetGateway, secret: string) => Promise<number>,
) {
  const token = await createToken(planes[0])
  for (const gateway of gateways) {
    await eventually(async () => (await say(gateway, token.token_value)) === 200)
  }
  return token
}
