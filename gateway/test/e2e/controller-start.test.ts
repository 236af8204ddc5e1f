import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { launch } from '../support/gateway.ts'
import { until, within } from '../support/wait.ts'

describe('tollgate controller', () => {
  it('ends at a signal while the API server does not respond', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-controller-'))
    endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
    const [server, ...ports] = await freePorts(4)
    const kubeconfig = join(folder, 'kubeconfig')
    const content = {
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test' } }],
      clusters: [{ name: 'test', cluster: { server: `http://127.0.0.1:${server}` } }],
    }
    writeFileSync(kubeconfig, JSON.stringify(content))
    const [listen, stats, readiness] = ports.map((port) => `127.0.0.1:${port}`)
    const flags = { kubeconfig, listen, stats, readiness, namespace: 'system' }
    const { child, exited, stdout } = launch(
      ['controller', ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
      {},
    )
    await until('an attempt', () => stdout().includes('authority not available'))
    child.kill('SIGTERM')
    await within('the end', exited)
    expect([child.exitCode, child.signalCode]).toEqual([0, null])
  })
})
