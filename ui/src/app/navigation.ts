import {
  BookOpenCheck,
  Boxes,
  Braces,
  ChartSpline,
  CircleDollarSign,
  FileCog,
  Gauge,
  History,
  KeyRound,
  LayoutDashboard,
  ListTree,
  type LucideIcon,
  MessagesSquare,
  Network,
  PlugZap,
  Rocket,
  Route,
  ScrollText,
  Server,
  Shield,
  ShieldCheck,
  Shuffle,
  Signpost,
  SlidersHorizontal,
  Telescope,
  Wallet,
  Waypoints,
} from 'lucide-react'

export type NavigationItem = {
  readonly label: string
  readonly path: string
  readonly icon: LucideIcon
  /** Further words that find the page in the command palette. */
  readonly words?: string
}

export type NavigationGroup = { readonly label: string; readonly items: readonly NavigationItem[] }

/** Pages of the sidebar and the command palette, in order. */
export const navigation: readonly NavigationGroup[] = [
  {
    label: 'Gateway',
    items: [
      { label: 'Overview', path: '/', icon: LayoutDashboard, words: 'home status health dashboard' },
      { label: 'Get started', path: '/start', icon: Rocket, words: 'setup wizard first model onboarding' },
      {
        label: 'Client setup',
        path: '/clients',
        icon: PlugZap,
        words: 'sdk curl snippet cursor claude code',
      },
    ],
  },
  {
    label: 'Observe',
    items: [
      { label: 'Requests', path: '/requests', icon: ScrollText, words: 'log tail search trace explain' },
      { label: 'Usage', path: '/usage', icon: ChartSpline, words: 'analytics cost tokens report export csv' },
      { label: 'Budgets', path: '/budgets', icon: Wallet, words: 'spend money cap' },
      { label: 'Limits', path: '/limits', icon: Gauge, words: 'rate limit 429 throttle quota' },
    ],
  },
  {
    label: 'LLM',
    items: [
      { label: 'Models', path: '/llm/models', icon: Boxes, words: 'llm model' },
      {
        label: 'Virtual models',
        path: '/llm/virtual-models',
        icon: Shuffle,
        words: 'failover weights routing',
      },
      {
        label: 'Providers',
        path: '/llm/providers',
        icon: Server,
        words: 'credentials openai anthropic bedrock vertex',
      },
      { label: 'Keys', path: '/llm/keys', icon: KeyRound, words: 'virtual api keys rotate revoke' },
      {
        label: 'Guards',
        path: '/llm/guards',
        icon: ShieldCheck,
        words: 'guardrails moderation pii webhook regex',
      },
      {
        label: 'Policies',
        path: '/llm/policies',
        icon: Shield,
        words: 'authentication authorization cors limits',
      },
      { label: 'Costs', path: '/llm/costs', icon: CircleDollarSign, words: 'prices catalog' },
      { label: 'Chat', path: '/chat', icon: MessagesSquare, words: 'playground compare models' },
    ],
  },
  {
    label: 'MCP',
    items: [
      { label: 'Servers', path: '/mcp/servers', icon: Network, words: 'mcp targets tools prompts resources' },
      {
        label: 'Access',
        path: '/mcp/access',
        icon: Telescope,
        words: 'rules hidden tools claims authorization',
      },
      { label: 'Policies', path: '/mcp/policies', icon: Shield, words: 'mcp authentication authorization' },
      { label: 'Playground', path: '/mcp/playground', icon: Braces, words: 'call tools inspector' },
    ],
  },
  {
    label: 'Traffic',
    items: [
      { label: 'Gateways', path: '/traffic/gateways', icon: Waypoints, words: 'listeners ports tls' },
      { label: 'Routes', path: '/traffic/routes', icon: Route, words: 'http paths hosts' },
      { label: 'TCP routes', path: '/traffic/tcp-routes', icon: ListTree, words: 'tcp tls passthrough' },
      {
        label: 'Where would it go?',
        path: '/traffic/explain',
        icon: Signpost,
        words: 'match route request explain',
      },
    ],
  },
  {
    label: 'Tools',
    items: [
      { label: 'CEL playground', path: '/tools/cel', icon: BookOpenCheck, words: 'expression rule test' },
      { label: 'Configuration', path: '/tools/configuration', icon: FileCog, words: 'raw yaml file editor' },
      { label: 'History', path: '/tools/history', icon: History, words: 'changes audit revert undo' },
      {
        label: 'Console settings',
        path: '/settings',
        icon: SlidersHorizontal,
        words: 'login oidc ui policies theme',
      },
    ],
  },
]
