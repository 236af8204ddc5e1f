import {
  Boxes,
  CircleDollarSign,
  KeyRound,
  ListTree,
  type LucideIcon,
  Network,
  Route,
  Server,
  Shield,
  Shuffle,
  SlidersHorizontal,
  Waypoints,
} from 'lucide-react'
import { labelOf } from '../../schema-form/model/label.ts'

type KindLook = { readonly title: string; readonly noun: string; readonly icon: LucideIcon }

const looks: Readonly<Record<string, KindLook>> = {
  modelCatalog: { title: 'Model catalog', noun: 'model catalog', icon: CircleDollarSign },
  'llm.provider': { title: 'Providers', noun: 'provider', icon: Server },
  'llm.model': { title: 'Models', noun: 'model', icon: Boxes },
  'llm.virtualModel': { title: 'Virtual models', noun: 'virtual model', icon: Shuffle },
  'llm.apiKey': { title: 'Keys', noun: 'key', icon: KeyRound },
  'llm.policy': { title: 'LLM policies', noun: 'policy', icon: Shield },
  'mcp.target': { title: 'MCP servers', noun: 'server', icon: Network },
  'mcp.policy': { title: 'MCP policies', noun: 'policy', icon: Shield },
  'mcp.settings': { title: 'MCP settings', noun: 'MCP settings', icon: SlidersHorizontal },
  'traffic.gateway': { title: 'Gateways', noun: 'gateway', icon: Waypoints },
  'traffic.route': { title: 'Routes', noun: 'route', icon: Route },
  'traffic.tcpRoute': { title: 'TCP routes', noun: 'TCP route', icon: ListTree },
  'ui.policy': { title: 'Console policies', noun: 'policy', icon: Shield },
}

/** Words and icon of a kind; those of an unknown kind derive from its name. */
export function lookOf(kind: string): KindLook {
  const name = labelOf(kind.split('.').at(-1) ?? kind)
  return looks[kind] ?? { title: name, noun: name.toLowerCase(), icon: SlidersHorizontal }
}

/** Whether records of a kind are policies, named by their field. */
export function isPolicyKind(kind: string): boolean {
  return kind.endsWith('.policy')
}
