import { type DestinationStream, pino } from 'pino'
import type { Settings } from '../src/config.ts'
import type { Log } from '../src/lib/log.ts'

/** JSON lines, one an event worth a person's reading, each naming the process it comes from (contract section 14). */
export function createLog(
  processName: string,
  level: Settings['log_level'],
  destination: DestinationStream = pino.destination({ fd: 1, sync: true }),
): Log {
  return pino(
    {
      level,
      base: { process: processName },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  )
}
