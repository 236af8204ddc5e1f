import { Page } from '../../components/layout/page.tsx'
import { PolicyList } from './policy-list.tsx'

/** Policies of all LLM requests. */
export default function LlmPolicies() {
  return (
    <Page
      title="LLM policies"
      about="Rules that every LLM request passes before it reaches a model: who may call, what, and how much."
    >
      <PolicyList kind="llm.policy" path="/llm/policies" />
    </Page>
  )
}
