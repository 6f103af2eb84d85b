/** The files of the console. The build puts them into the executable in place of this; from source they are made here. */
import { bundleConsole, type ConsoleAsset } from './bundle.ts'

export const consoleAssets = (): Promise<readonly ConsoleAsset[]> => bundleConsole()
