import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import { createChildGroups } from './child-groups.ts'

const programs: ChildProcess[] = []

afterEach(() => {
  for (const program of programs.splice(0)) program.kill('SIGKILL')
})

/** A program in a process group of its own, that would run for a minute. */
function program(): { pid: number; ended: Promise<unknown> } {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
  programs.push(child)
  return { pid: child.pid ?? 0, ended: once(child, 'exit') }
}

function groups() {
  const watched = new Set<number>()
  const guardian = {
    watch: (group: number) => void watched.add(group),
    unwatch: (group: number) => void watched.delete(group),
  }
  return { watched, children: createChildGroups(guardian) }
}

it('kills the programs of a data plane that has ended, and no others', async () => {
  const { watched, children } = groups()
  const [failed, other] = [program(), program()]
  children.watch(1, failed.pid)
  children.watch(0, other.pid)
  children.kill(1)
  expect(await failed.ended).toEqual([null, 'SIGKILL'])
  expect([...watched]).toEqual([other.pid])
  expect(process.kill(other.pid, 0)).toBe(true)
})

it('kills the programs of all data planes', async () => {
  const { children } = groups()
  const started = [program(), program()]
  for (const [plane, { pid }] of started.entries()) children.watch(plane, pid)
  children.killAll()
  for (const { ended } of started) expect(await ended).toEqual([null, 'SIGKILL'])
})

it('does not signal a process group that has ended', async () => {
  const { watched, children } = groups()
  const { pid } = program()
  children.watch(0, pid)
  children.unwatch(pid)
  children.kill(0)
  children.killAll()
  expect(watched.size).toBe(0)
  expect(process.kill(pid, 0)).toBe(true)
})
