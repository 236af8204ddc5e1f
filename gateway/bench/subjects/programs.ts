import { accessSync, constants } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'

/** The folder where the reader runs the command; npm changes the current one. */
export function readerFolder(): string {
  return process.env['INIT_CWD'] ?? process.cwd()
}

/** Whether a program exists: a path, or a name in `PATH`. */
export function isInstalled(program: string): boolean {
  const candidates = program.includes('/')
    ? [resolve(readerFolder(), program)]
    : (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, program))
  return candidates.some(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
