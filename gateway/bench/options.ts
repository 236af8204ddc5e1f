import { parseArgs } from 'node:util'
import { type PeerCommand, parsePeer } from './peers/command.ts'
import { type Placement, parsePlacement } from './subjects/placement.ts'

export type BenchOptions = {
  quick: boolean
  long: boolean
  profile: boolean
  json: boolean
  /** Names of workloads, or their prefixes; undefined for all. */
  only: readonly string[] | undefined
  rounds: number
  secondsPerRound: number
  /** Connections of every workload, in place of its own number. */
  connections: number | undefined
  nodeFlags: string[]
  entry: string | undefined
  peers: PeerCommand[]
  placement: Placement
  /** Number of workers to compare with one; no other workloads then. */
  workers: number | undefined
}

/** Reads the command line. Errors name the argument and a valid form. */
export function parseOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      /** Shorter rounds, fewer streams: to see that the benchmark runs. */
      quick: { type: 'boolean', default: false },
      /** Memory over a million requests as well. */
      long: { type: 'boolean', default: false },
      /** Sources of the CPU time of relay and gateway, in place of its amount. */
      profile: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      /**
       * Workloads, separated by commas: completion, prompt, stream, cache, providers, translate,
       * translate-stream, open-streams, mcp-json, mcp-sse, mcp-sessions, http-get, http-post, guard,
       * guard-stream, policies, ledger, reload, tcp, loop; or a prefix: mcp, http, guard, translate.
       */
      only: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      /** A flag of the runtime for Tollgate, may be repeated. */
      'node-flag': { type: 'string', multiple: true, default: [] },
      /** Another program to measure than the source, for example the bundle. */
      entry: { type: 'string' },
      /** Another gateway to measure, `NAME=COMMAND`, may be repeated. */
      peer: { type: 'string', multiple: true, default: [] },
      /** Cases of several workers: throughput, large-bodies, spread, memory, keys, named workers-…. */
      workers: { type: 'string' },
      /** CPUs by role, for example `load=0,upstream=0,gateway=1`. */
      pin: { type: 'string' },
    },
  })
  const { quick } = values
  return {
    quick,
    long: values.long,
    profile: values.profile,
    json: values.json,
    only: values.only?.split(','),
    rounds: positive('--rounds', values.rounds) ?? (quick ? 3 : 5),
    secondsPerRound: positive('--seconds', values.seconds) ?? (quick ? 0.3 : 2),
    connections: count('--connections', values.connections),
    nodeFlags: values['node-flag'],
    entry: values.entry,
    peers: distinct(values.peer.map(parsePeer)),
    workers: count('--workers', values.workers),
    placement: values.pin === undefined ? {} : parsePlacement(values.pin),
  }
}

function distinct(peers: PeerCommand[]): PeerCommand[] {
  const twice = peers.find(({ name }, index) => peers.findIndex((peer) => peer.name === name) < index)
  if (twice) throw new Error(`there are two peers with the name ${twice.name}: name each once`)
  return peers
}

function count(name: string, text: string | undefined): number | undefined {
  const value = positive(name, text)
  if (value === undefined || Number.isInteger(value)) return value
  throw new Error(`${name} must be a whole number, got "${text}"`)
}

function positive(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value)))
    throw new Error(`${name} must be a number above 0, got "${text}"`)
  return value
}
