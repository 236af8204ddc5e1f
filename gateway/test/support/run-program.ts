import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { endAfter } from './cleanup.ts'
import { within } from './wait.ts'

const { resolve } = createRequire(import.meta.url)

/** The path of a file inside an installed package. */
export function packageFile(name: string, path: string): string {
  return resolve(`${name}/package.json`).replace(/package\.json$/, path)
}

/** Runs a Node program to its end. */
export async function runProgram(
  file: string,
  args: readonly string[],
  limitMs = 25_000,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  endAfter('test', () => {
    child.kill('SIGKILL')
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text
  })
  const code = await within(
    `${file} ends`,
    new Promise<number | null>((done) => child.once('close', done)),
    limitMs,
  )
  return { code, ...output }
}
