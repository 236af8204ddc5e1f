import { SlidersHorizontal, Telescope } from 'lucide-react'
import { ButtonLink } from '../../components/action/button.tsx'
import { Page } from '../../components/layout/page.tsx'
import { PolicyList } from './policy-list.tsx'

/** Policies of all MCP requests. */
export default function McpPolicies() {
  return (
    <Page
      title="MCP policies"
      about="Rules that every MCP request passes before it reaches a server: who may call, which tools, and how often."
      actions={
        <>
          <ButtonLink icon={Telescope} href="/mcp/access">
            Check access
          </ButtonLink>
          <ButtonLink icon={SlidersHorizontal} href="/mcp/settings">
            Endpoint settings
          </ButtonLink>
        </>
      }
    >
      <PolicyList kind="mcp.policy" path="/mcp/policies" />
    </Page>
  )
}
