import { lookup } from 'node:dns/promises'

/** All addresses of a host name from this machine's resolver. Rejects if there are none. */
export const resolveHost = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address)
