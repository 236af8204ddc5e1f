import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))

function tollgate(...args: string[]) {
  const command = [join(root, 'gateway/bin/tollgate.mjs'), ...args]
  const { stdout, stderr, status } = spawnSync(process.execPath, command, {
    encoding: 'utf8',
    timeout: 20_000,
  })
  return { stdout, stderr, status }
}

describe('the command line', () => {
  it.each(['--version', '-V'])('%s prints the version of the package', (option) => {
    const { version } = JSON.parse(readFileSync(join(root, 'gateway/package.json'), 'utf8'))
    expect(tollgate(option)).toEqual({ stdout: `tollgate ${version}\n`, stderr: '', status: 0 })
  })

  it.each(['--help', '-h'])('%s names every option', (option) => {
    const { stdout, stderr, status } = tollgate(option)
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    for (const name of ['-f, --file', '--validate-only', '-V, --version', '-h, --help', 'tollgate schema'])
      expect(stdout).toContain(name)
  })

  it('schema prints the schema that the documentation holds', () => {
    const { stdout, status } = tollgate('schema')
    expect(status).toBe(0)
    const documented = readFileSync(join(root, 'docs/reference/config.schema.json'), 'utf8')
    expect(JSON.parse(stdout)).toEqual(JSON.parse(documented))
  })

  it.each([
    [['-f'], '--file'],
    [['-f', ''], 'no configuration file'],
    [['--fiel', 'x.yaml'], '--fiel'],
    [['serve', '-f', 'x.yaml'], 'unknown command "serve"'],
    [['schema', 'more'], 'unknown command'],
    [['-f', 'no/such/file.yaml'], 'no/such/file.yaml: there is no such file'],
    [['--validate-only', '-f', root], 'it is a directory'],
  ])('refuses %j with a reason', (args, reason) => {
    const run = tollgate(...args)
    expect(run).toMatchObject({ stdout: '', status: 1 })
    expect(run.stderr).toContain(reason)
    expect(run.stderr).not.toMatch(/^\s+at /m)
  })
})
