/**
 * The network between one sidecar and the rest, as something that can be cut: bytes pass through ports of this process
 * to control plane and primary, and while it is cut nothing arrives and nobody is told, as with a pulled cable. Where
 * the control plane names the primary, the port before it is named instead.
 */
import type { Socket } from 'bun'
import { freePort } from '../support/free-port.ts'

export interface CuttableNetwork extends AsyncDisposable {
  /** Where the sidecar finds its control plane. */
  controlPlane: string
  cut(): void
  mend(): void
}

interface Side {
  other: Socket<Side> | null
  waiting: Uint8Array[]
}

export async function cuttableNetwork(controlPlane: string, primary: string): Promise<CuttableNetwork> {
  let isCut = false
  const primaryPort = await freePort()
  const named = Buffer.from(primary)
  // Of the same length, so that the length that an answer has announced stays true.
  const naming = Buffer.from(`http://127.0.0.1:${String(primaryPort).padStart(5, '0')}`)
  if (named.length !== naming.length) throw new RangeError('Both ports need as many digits')
  const rename = (data: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(data)
    const at = bytes.indexOf(named)
    if (at >= 0) naming.copy(bytes, at)
    return bytes
  }
  const sockets = new Set<Socket<Side>>()
  const pass = (side: Side, data: Uint8Array) => {
    if (isCut) return
    if (side.other === null) side.waiting.push(data)
    else side.other.write(data)
  }
  const forward = (target: string, port: number) =>
    Bun.listen<Side>({
      hostname: '127.0.0.1',
      port,
      socket: {
        async open(client) {
          sockets.add(client)
          client.data = { other: null, waiting: [] }
          const { hostname, port: targetPort } = new URL(target)
          const server = await Bun.connect<Side>({
            hostname,
            port: Number(targetPort),
            data: { other: client, waiting: [] },
            socket: {
              data: (socket, data) => pass(socket.data, rename(data)),
              close: (socket) => void socket.data.other?.end(),
            },
          }).catch(() => null)
          if (server === null) {
            client.end()
            return
          }
          client.data.other = server
          for (const data of client.data.waiting.splice(0)) server.write(data)
        },
        data: (client, data) => pass(client.data, Uint8Array.from(data)),
        close(client) {
          sockets.delete(client)
          client.data.other?.end()
        },
      },
    })
  const listeners = [forward(controlPlane, 0), forward(primary, primaryPort)]
  return {
    controlPlane: `http://127.0.0.1:${listeners[0]?.port}`,
    cut() {
      isCut = true
    },
    mend() {
      isCut = false
      // What was lost on the way makes the rest of a connection worthless, as a host finds out that comes back.
      for (const socket of sockets) socket.terminate()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.terminate()
      for (const listener of listeners) listener.stop(true)
    },
  }
}
