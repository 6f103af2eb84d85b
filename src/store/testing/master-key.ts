/** A master key for tests that open no installation. */
import { MasterKey } from '../keys/master-key.ts'

export const testMasterKey = (fill = 1): MasterKey =>
  new MasterKey({ current: new Uint8Array(32).fill(fill), next: null, former: [] }, 'installation key of a test')
